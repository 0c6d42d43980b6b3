"""Secrets in a command line, a form or an address: the password after `curl -u ann:`, `sshpass -p`, in a netrc.

Arguments are separated by spaces, or by the separator of two arguments in a JSON list at any depth (`","`). All patterns have a
bounded length."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache, partial

from codex_replay.core.redact.placeholders import is_placeholder
from codex_replay.core.redact.text import Finder, Span

_NEXT = r"(?:[ \t]{1,8}+|\\{0,63}[\"'],[ \t]{0,4}+)\\{0,63}[\"']?"
# What follows a quote that ends a string is no value: redacting the comma would break the JSON.
_VALUE = r"(?P<secret>(?![-$<{(\])]|(?<=[\"'])[,:}])[^\x00-\x20\"'\\|;&<>]{1,256}+)"
_WITHIN = r"[^\r\n|;]{0,512}?"
_EOL = r"(?:\r?\n|\\{1,64}r\\{1,64}n|\\{1,64}n)"
#: Ports and their pairs (`docker run --name mysql -p3306:3306`), and words that stand for a password.
_HARMLESS = re.compile(
    rb"(?:[0-9.]{7,15}:)?[0-9]{1,6}(?::[0-9]{1,6})?|(?i:true|false|null|none|yes|no|ok|password|passwd|secret|\*+|x+|\.+)"
)

_OPTIONS = r"(?:(?![\r\n|;]|&&|\\{1,63}[nr])[\x00-\xff]){0,512}?"  # of one command
_NEAR = r"[^\r\n|;]{0,96}?"  # after a word that is short or common
_FLAGS = rf"(?:{_NEXT}-[A-OQ-Za-z]{{1,4}}){{0,4}}"
_SIGN = r"[^\x00-\x20\"'\\|;&<>]"  # of a value
_LIKE = rf"(?={_SIGN}{{0,256}}[0-9!#@^*+?]){_VALUE}"  # after an option that is often something else
_RANDOM = r"(?=[^\s\"'<>\\]{0,256}[0-9])"
_TELLING = r"[A-Z][A-Z0-9_]{0,64}(?:TOKEN|SECRET|PASSWORD|PASSWD|_KEY|APIKEY)"
_TELLING_NAME = r"[\w.:-]{0,48}(?i:password|passwd|passphrase|secret|token|api_?key)"
_ATTRIBUTE = rf"\\{{0,63}}[\"']{_TELLING_NAME}\\{{0,63}}[\"'][ \t]{{1,8}}value=\\{{0,63}}[\"'](?P<secret>[^\s\"'\\<>]{{1,256}}+)"
_KEY_LINES = rf"(?P<secret>(?!redacted-)[A-Za-z0-9+/=]{{1,64}}(?:{_EOL}(?![A-Za-z-]{{1,32}}:)[A-Za-z0-9+/=]{{1,64}}){{0,99}}+)"
_CRYPT = r"[./A-Za-z0-9]"

#: A password's hash, after the first `$`: bcrypt, SHA-crypt, yescrypt, argon2.
_HASH = (
    rf"2[aby]\$[0-9]{{2}}\${_CRYPT}{{53}}|(?:apr)?1\${_CRYPT}{{1,8}}\${_CRYPT}{{22}}|[56]\$(?:rounds=[0-9]{{1,9}}\$)?{_CRYPT}{{1,16}}\$(?:{_CRYPT}{{86}}|{_CRYPT}{{43}})"
    rf"|y\${_CRYPT}{{2,16}}\${_CRYPT}{{1,64}}\${_CRYPT}{{43}}"
    rf"|argon2i?d?\$v=[0-9]{{1,3}}\$m=[0-9,tp=]{{5,40}}\$[A-Za-z0-9+/]{{8,64}}\$[A-Za-z0-9+/]{{16,128}}"
)

#: Two strings of code, the second of which is the password of the first.
_LOGIN_STRINGS = rf"\\{{0,63}}[\"'][^\s\"'\\]{{1,128}}\\{{0,63}}[\"'],[ ]?\\{{0,63}}[\"']{_VALUE}"
#: Signs of both cases and a digit, as random texts have, and no name of a method such as `SHA256`.
_MIXED = (
    r"(?!(?i:(?:base|sha|utf|pbkdf|x)-?[0-9]|md5|hmac|oauth|aes|rsa|bcrypt|argon))"
    rf"(?={_SIGN}{{0,256}}[0-9])(?={_SIGN}{{0,256}}[a-z])(?={_SIGN}{{0,256}}[A-Z!#@^*+?])"
)
_STDIN = (
    r"(?:kinit|cryptsetup|vercel[ ]env[ ]add|wrangler[ ]secret[ ]put|gcloud[ ]secrets|(?:docker|podman)[ ]secret|pass[ ]insert"
    r"|(?:docker|podman|helm|oras|skopeo|gh|glab|gpg)\b[^\r\n|;]{0,96}--(?:password-stdin|with-token|stdin|passphrase-fd))"
)
_QUOTE = r"\\{0,63}[\"']"
_LIKE_STRING = rf"{_QUOTE}{_LIKE}"
#: Two or three strings of a call, the last of which is the password of the one before.
_LOGIN_CALL = rf"(?:{_QUOTE}[^\"'\r\n]{{0,256}}?{_QUOTE},[ ]?)?{_QUOTE}[^\s\"'\\]{{1,128}}{_QUOTE},[ ]?{_LIKE_STRING}"
_LONG = rf"(?P<secret>{_RANDOM}[A-Za-z0-9+/_]{{24,}}+={{0,2}})"
#: Commands whose option takes a password: the first words, and the option.
_OPTION_OF = (
    *(("mosquitto_", "P"), ("ipmitool ", "P"), ("bcp ", "P"), ("rabbitmqadmin ", "p"), ("cqlsh ", "p"), ("cypher-shell ", "p")),
    *(("rdesktop ", "p"), ("psexec ", "p"), ("elasticsearch-users ", "p"), ("useradd ", "p"), ("unlock-keychain ", "p")),
    *(
        ("-generic-password ", "w"),
        ("-internet-password ", "w"),
        ("az sql ", "p"),
        ("az acr ", "p"),
        ("plink ", "pw"),
        ("pscp ", "pw"),
    ),
    *(("openssl enc ", "k"), ("influx ", "password"), ("isql", "password"), ("nuget ", "Password"), ("x11vnc ", "passwd")),
)

_PASSWORD_OPTION = r"--(?:http-|ftp-|proxy-)?password"
_UUID = r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}"
_ASSIGNED = rf"(?:{_QUOTE})?[ ]?[:=][ ]?(?:{_QUOTE})?"
_AWS = r"(?:aws_secret_access_key|aws_session_token|aws_access_key_id)"
_FIELD = r"[\w.-]{0,32}(?i:password|passwd|passphrase|secret|token|api_key|apikey)"
_PART_HEADERS = rf"(?:[A-Za-z-]{{1,32}}:[^\r\n\\]{{0,128}}{_EOL}){{0,3}}"

#: The word that a form begins with, the rest of the form with its `secret`, and what that is.
FORMS: tuple[tuple[str, str, str], ...] = (
    (
        "curl",
        rf"{_WITHIN}(?<![\w-])(?:-u|--user|--proxy-user|-U)(?:=\\{{0,63}}[\"']?|{_NEXT})[^\s\"':\\]{{0,128}}:{_VALUE}",
        "password",
    ),
    ("wget", rf"{_WITHIN}(?<![\w-]){_PASSWORD_OPTION}(?:=|{_NEXT}){_VALUE}", "password"),
    ("sshpass", rf"{_NEXT}-p(?:{_NEXT})?{_VALUE}", "password"),
    ("mysql", rf"(?:dump|admin|import|show)?\b{_WITHIN}(?<![\w-])-p{_VALUE}", "password"),
    ("mariadb", rf"(?:-[a-z]+)?{_WITHIN}(?<![\w-])-p{_VALUE}", "password"),
    ("redis-cli", rf"{_WITHIN}(?<![\w-])-a{_NEXT}{_VALUE}", "password"),
    (
        "login",
        rf"[ \t]{{1,8}}[^\s\"'\\]{{1,128}}(?:[ \t]{{1,8}}|{_EOL}[ \t]{{0,8}})(?:password|passwd)[ \t]{{1,8}}{_VALUE}",
        "password",
    ),
    ("configure", rf"{_NEXT}set{_NEXT}[\w.-]{{0,64}}{_AWS}{_NEXT}{_VALUE}", "api-key"),
    (
        "form-data",
        rf";[ ]?name=\\{{0,63}}[\"']?{_FIELD}\\{{0,63}}[\"']?{_EOL}{_PART_HEADERS}{_EOL}{_VALUE}",
        "password",
    ),
    ("accountkey=", r"(?P<secret>[A-Za-z0-9+/%]{20,}+={0,2})", "api-key"),
    ("sharedaccesskey=", r"(?P<secret>[A-Za-z0-9+/%]{20,}+={0,2})", "api-key"),
    ("sig=", r"(?i)(?<=[?&;]sig=)(?P<secret>[A-Za-z0-9%+/_-]{20,}+=*)", "token"),
    ("signature=", r"(?i)(?<=[?&;-]signature=)(?P<secret>[A-Za-z0-9%+/_~-]{20,}+=*)", "token"),
    ("code=", r"(?i)(?<=[?&]code=)(?P<secret>(?:4/)?(?=[A-Za-z._~%-]{0,256}[0-9])[A-Za-z0-9._~%-]{10,}+)", "token"),
    ("1//0", r"(?P<secret>[A-Za-z0-9_-]{30,}+)", "token"),
    ("hooks.slack.com/", r"(?:services|workflows|triggers)/(?P<secret>[A-Za-z0-9/_-]{16,}+)", "token"),
    ("smbclient", rf"{_OPTIONS}(?<![\w-])-U(?:{_NEXT})?[^\s%\"'\\]{{1,128}}%{_VALUE}", "password"),
    ("ldap", rf"(?:search|modify|add|delete|whoami|passwd|compare){_OPTIONS}(?<![\w-])-w(?:{_NEXT})?{_LIKE}", "password"),
    (
        "login",
        rf"(?:(?<=docker.login)|(?<=podman.login)|(?<=skopeo.login)|(?<=registry.login)|(?<=\",\"login)|(?<=\", \"login))"
        rf"{_OPTIONS}(?<![\w-])-p(?:=|{_NEXT}){_LIKE}",
        "password",
    ),
    ("--service-principal", rf"{_OPTIONS}(?<![\w-])-p(?:=|{_NEXT}){_LIKE}", "password"),
    ("mongo", rf"(?:sh|dump|restore|export|import)\b{_OPTIONS}(?<![\w-])-p(?:=|{_NEXT}){_LIKE}", "password"),
    ("sqlcmd", rf"{_OPTIONS}(?<![\w-])-P(?:{_NEXT})?{_LIKE}", "password"),
    ("zip", rf"{_FLAGS}{_NEXT}-P{_NEXT}{_LIKE}", "password"),
    ("7z", rf"[ar]?{_NEXT}[adelrtux]\b{_OPTIONS}(?<![\w-])-p{_LIKE}", "password"),
    *(
        (f"http{end}", rf"(?:=|{_NEXT})[^\s\"':\\]{{1,128}}:{_VALUE}", "password")
        for end in (" -a", "s -a", " --auth", "s --auth")
    ),
    ("lftp", rf"{_OPTIONS}(?<![\w-])-u(?:{_NEXT})?[^\s,\"'\\]{{1,128}},{_VALUE}", "password"),
    ("echo ", rf"[\"']?(?=[^\s|]{{0,256}}[0-9!#@^*+?]){_VALUE}[\"']?[ \t]{{0,8}}\|[ \t]{{0,8}}sudo[ \t]{{1,8}}-S", "password"),
    (":5432:", rf"[\w*.-]{{1,64}}:[\w*.-]{{1,64}}:{_VALUE}", "password"),
    ("env ", rf"(?:(?<=ENV )|(?<=setenv )){_TELLING}[ \t]{{1,8}}{_RANDOM}(?=[^\s]{{12}}){_VALUE}", "secret"),
    ("set -", rf"[gxU]{{1,3}}[ \t]{{1,8}}{_TELLING}[ \t]{{1,8}}\\{{0,63}}[\"']?{_RANDOM}(?=[^\s]{{12}}){_VALUE}", "secret"),
    ("setx ", rf"{_TELLING}[ \t]{{1,8}}\\{{0,63}}[\"']?{_RANDOM}(?=[^\s]{{12}}){_VALUE}", "secret"),
    ("gh secret set", rf"{_NEAR}(?<![\w-])(?:-b|--body)(?:=|{_NEXT}){_LIKE}", "secret"),
    (
        "echo ",
        rf"\\{{0,63}}[\"']?[\w.-]{{1,64}}:{_VALUE}[\"'\\]{{0,64}}[ \t]{{0,8}}\|[ \t]{{0,8}}(?:sudo[ \t]{{1,8}})?chpasswd",
        "password",
    ),
    ("echo ", rf"[\"']?{_VALUE}[\"']?[ \t]{{0,8}}\|[ \t]{{0,8}}(?:sudo[ \t]{{1,8}})?passwd[ \t]{{1,8}}--stdin", "password"),
    ("mc alias set", rf"(?:{_NEXT}[^\s\"'\\]{{1,256}}){{3}}{_NEXT}{_LIKE}", "password"),
    ("net use ", rf"{_OPTIONS}\\[^\s\"']{{1,128}}[ \t]{{1,8}}(?:/user:[^\s\"']{{1,64}}[ \t]{{1,8}})?(?!/){_LIKE}", "password"),
    *(
        ("snmp", rf"(?:walk|get|set|bulkwalk|bulkget|getnext|table|status)\b{_NEAR}(?<![\w-])-{flag}{_NEXT}{_LIKE}", "password")
        for flag in "AX"
    ),
    ("jdbc:oracle:", r"[a-z]{1,8}:[^\s/\"'\\@]{1,64}/(?P<secret>[^\s\"'\\@]{1,128}+)@", "password"),
    ("bindpw", rf"[ \t]{{1,8}}{_LIKE}", "password"),
    ("psk=", rf"\\{{0,63}}\"?{_LIKE}", "password"),
    ("_pat=", r"(?<=[A-Z]_PAT=)\\{0,63}[\"']?(?P<secret>[A-Za-z0-9_-]{20,}+)", "secret"),
    ("oauth:", r"(?P<secret>[a-z0-9]{30})(?![A-Za-z0-9])", "token"),  # Twitch
    ("define(", rf"[ ]?{_QUOTE}{_TELLING_NAME}{_QUOTE},[ ]{{0,16}}{_QUOTE}{_VALUE}", "password"),
    (
        "define(",
        rf"[ ]?{_QUOTE}[A-Z_]{{4,24}}_(?:KEY|SALT){_QUOTE},[ ]{{0,16}}'(?P<secret>(?!redacted-)[^'\"\\\r\n]{{40,}}+)'",
        "password",
    ),
    ("setpassword(", rf"\\{{0,63}}[\"'](?!\)){_VALUE}", "password"),
    ("networkcredential(", rf"\\{{0,63}}\"[^\"\\]{{0,64}}\\{{0,63}}\",[ ]?\\{{0,63}}\"{_VALUE}", "password"),
    ("</key>", rf"(?i)(?<=password</key>)(?:{_EOL}|[ \t]){{0,16}}<string>{_VALUE}", "password"),
    ("connect.sid=", r"(?P<secret>[A-Za-z0-9%._+/-]{24,}+)", "cookie"),
    ("phpsessid=", r"(?P<secret>[A-Za-z0-9,-]{20,}+)", "cookie"),
    ("jsessionid=", r"(?P<secret>[A-Za-z0-9.!-]{20,}+)", "cookie"),
    ("_session=", r"(?<=[a-z]_session=)(?P<secret>[A-Za-z0-9%._+/-]{24,}+)", "cookie"),
    ("pbkdf2_sha", rf"[0-9]{{1,3}}\$[0-9]{{1,9}}\$(?P<secret>{_CRYPT}{{4,64}}\$[A-Za-z0-9+/]{{20,}}={{0,2}})", "password"),
    (
        "scram-sha-",
        r"[0-9]{1,3}\$(?P<secret>[0-9]{1,9}:[A-Za-z0-9+/]{8,}={0,2}\$[A-Za-z0-9+/]{20,}={0,2}:[A-Za-z0-9+/]{20,}={0,2})",
        "password",
    ),
    ("private-mac:", r"[ \t]{0,4}(?P<secret>[0-9a-f]{40,64})", "private-key"),
    (" mac=", r"\\{0,63}\"(?P<secret>[A-Za-z0-9+/]{20,}={0,2})", "token"),  # Hawk
    ("maker.ifttt.com/trigger/", r"[\w-]{1,64}/(?:json/)?with/key/(?P<secret>[A-Za-z0-9_-]{20,}+)", "token"),
    (".make.com/", r"(?<=[0-9]\.make\.com/)(?P<secret>[a-z0-9]{30,}+)", "token"),
    ("/open-apis/bot/v2/hook/", r"(?P<secret>[0-9a-f-]{36})", "token"),
    ("/cgi-bin/webhook/send?key=", r"(?P<secret>[0-9a-f-]{36})", "token"),
    ("otpauth-migration://offline?data=", r"(?P<secret>[A-Za-z0-9%+/=_-]{20,}+)", "password"),
    ("key=", _ATTRIBUTE, "password"),
    ("name=", _ATTRIBUTE, "password"),
    ("$", rf"(?P<secret>(?<=access_token\$)(?:production|sandbox)\$[0-9a-z]{{16}}\$[0-9a-f]{{32}}|{_HASH})", "password"),
    ("1000.", r"(?P<secret>[0-9a-f]{32}\.[0-9a-f]{32})(?![0-9a-f])", "token"),
    ("response=", r"\\{0,63}\"(?P<secret>[0-9a-f]{32}|[0-9a-f]{64})\\{0,63}\"", "token"),
    ("signature=", r"(?i)(?<=[\s,]signature=)(?P<secret>[0-9a-f]{64})(?![0-9a-f])", "token"),
    (
        "private-lines:",
        rf"[ \t]{{0,4}}[0-9]{{1,3}}{_EOL}{_KEY_LINES}",
        "private-key",
    ),
    ("curl", rf"{_WITHIN}(?<![\w-])--pass(?:=|{_NEXT}){_VALUE}", "password"),
    (
        "curl",
        rf"{_WITHIN}(?<![\w-])-b(?:{_NEXT})?(?:[\w.-]{{1,64}}=[^;\s\"'\\]{{0,256}};[ ]?){{0,8}}?"
        rf"[\w.-]{{1,64}}=(?P<secret>(?!redacted-){_RANDOM}[^;\s\"'\\&|<>]{{12,}}+)",
        "cookie",
    ),
    *((f"-{store}{kind}pass", rf"{_NEXT}{_LIKE}", "password") for store in ("", "src", "dest") for kind in ("store", "key")),
    ("-pwd ", rf"(?<= -pwd )\\{{0,63}}[\"']?{_LIKE}", "password"),
    ("ssh-keygen", rf"{_NEAR}(?<![\w-])-[NP](?:{_NEXT})?{_LIKE}", "password"),
    ("twine", rf"{_NEAR}(?<![\w-])-p(?:=|{_NEXT}){_LIKE}", "password"),
    ("freerdp", rf"{_NEAR}[ \t]\\{{0,63}}[\"']?/p:{_VALUE}", "password"),
    ("sqlplus", rf"{_NEAR}(?<=[ \t\"'])[\w.-]{{1,64}}/(?P<secret>[^\s\"'\\/@]{{1,128}}+)@", "password"),
    ("net user ", rf"[\w.-]{{1,64}}[ \t]{{1,8}}(?!/)(?={_SIGN}{{6}}){_LIKE}", "password"),
    ("rabbitmqctl", rf"{_NEXT}(?:add_user|change_password){_NEXT}[^\s\"'\\]{{1,64}}{_NEXT}{_LIKE}", "password"),
    ("cargo login ", rf"(?P<secret>{_RANDOM}[A-Za-z0-9_-]{{20,}}+)", "token"),
    ("http-basic.", rf"[\w.-]{{1,64}}{_NEXT}[^\s\"'\\]{{1,64}}{_NEXT}{_LIKE}", "password"),
    ("pypi-token.", rf"[\w.-]{{1,64}}{_NEXT}{_LIKE}", "token"),
    ("requirepass ", _LIKE, "password"),
    ("masterauth ", _LIKE, "password"),
    *(
        (word, rf"(?:{before})?\\{{0,63}}[\"']?{_LIKE}\\{{0,63}}[\"']?[ \t]{{0,8}}\|[ \t]{{0,8}}{_STDIN}", "password")
        for word, before in (("echo ", "-n[ ]"), ("printf ", rf"{_QUOTE}%s{_QUOTE}[ ]"))
    ),
    *((word, rf"{_NEAR}<<<[ ]{{0,4}}\\{{0,63}}[\"']?{_LIKE}", "password") for word in ("-stdin ", "sudo -s ")),
    *((words, rf"{_NEAR}(?<![\w-])-{option}{_NEXT}{_LIKE}", "password") for words, option in _OPTION_OF),
    *((words, rf"{_NEAR}(?<![\w-])-h?p{_LIKE}", "password") for words in ("rar x ", "rar a ", "rar e ")),
    *((words, rf"{_NEAR}[ ]/{option}{_NEXT}{_LIKE}", "password") for words, option in (("signtool ", "p"), ("schtasks ", "rp"))),
    ("set password for ", rf"[^\r\n=;]{{1,128}}=[ ]?(?:(?i:password)\()?{_LIKE_STRING}", "password"),  # SQL, as the next ones
    ("identified with ", rf"[\w'\"]{{1,64}}[ ](?i:by)[ ]{_LIKE_STRING}", "password"),
    *((f"password{sign}n'", _LIKE, "password") for sign in ("=", " = ")),
    ("crypt(", rf"'(?=[^']{{1,256}}',[ ]?gen_salt){_LIKE}", "password"),
    ("pgp_sym_", rf"(?:en|de)crypt(?:_bytea)?\([^\r\n,]{{1,128}},[ ]?'{_LIKE}", "password"),
    *((f"{call}(", rf"{_QUOTE}{_TELLING}{_QUOTE},[ ]?{_LIKE_STRING}", "secret") for call in ("setenv", "set_var", "putenv")),
    *((f"{call}(", _LOGIN_CALL, "password") for call in ("mysqli", "pdo", "getconnection", "passwordauthentication", ".login")),
    *((f"{call}(", _LOGIN_CALL, "password") for call in ("mysqli_connect", "dbi->connect")),
    ("credentials(", rf"(?:{_QUOTE}[^\"'\r\n]{{1,64}}{_QUOTE},[ ]?){{3}}{_LIKE_STRING}", "password"),  # sbt
    *(
        (f"jwt.{call}(", rf"[^\r\n]{{1,200}}?,[ ]?{_QUOTE}(?=[^\s\"']{{12}}){_LIKE}{_QUOTE},[ ]?algorithm", "secret")
        for call in ("encode", "decode")
    ),
    ("fernet(", rf"b?{_QUOTE}(?P<secret>[A-Za-z0-9_-]{{43}}=)", "secret"),
    ("jwt.sign(", rf"[^\r\n'\"]{{1,64}},[ ]?{_QUOTE}(?=[^\s\"']{{12}}){_LIKE}", "secret"),
    ("name: ", rf"[\"']?{_TELLING}[\"']?{_EOL}[ \t]{{1,24}}value:[ \t]{{1,4}}\\{{0,63}}[\"']?{_LIKE}", "secret"),  # Kubernetes
    ("authorization ", rf"{_QUOTE}(?i:basic|bearer)[ ](?P<secret>[A-Za-z0-9+/._~-]{{12,}}+=*)", "bearer"),  # nginx
    (
        "config set ",
        rf"(?:--[a-z-]{{1,16}}[ ])?[^\s\"'\\=]{{0,128}}(?i:token|password|passwd|secret|_auth|api_?key){_NEXT}{_LIKE}",
        "token",
    ),
    (
        "user-secrets set",
        rf"{_NEXT}[^\s\"'\\]{{0,128}}(?i:token|password|passwd|secret|key)\\{{0,63}}[\"']?[ \t]{{1,8}}\\{{0,63}}[\"']?{_LIKE}",
        "secret",
    ),
    ("wandb login ", r"(?P<secret>[0-9a-f]{40})", "api-key"),
    *((words, _LONG, "token") for words in ("ngrok authtoken ", "add-authtoken ", "operator unseal ")),
    ("admin-password ", _LIKE, "password"),
    ("wifi connect ", rf"{_NEAR}[ ]password{_NEXT}{_LIKE}", "password"),
    ("wpa_passphrase ", rf"[^\s\"']{{1,64}}{_NEXT}(?={_SIGN}{{8}}){_LIKE}", "password"),
    ("htpasswd -b", rf"[a-zA-Z0-9]{{0,4}}(?:{_NEXT}[^\s\"'\\]{{1,128}}){{2}}{_NEXT}{_LIKE}", "password"),
    *((words, r"[\w.-]{1,64}/(?P<secret>[^\s\"'\\/@]{1,128}+)@", "password") for words in ("impdp ", "expdp ", "rman target ")),
    (" connect to ", rf"[\w.-]{{1,64}}[ ]user[ ][\w.-]{{1,64}}[ ]using[ ]{_LIKE}", "password"),
    (" -auth ", rf"[\w.@-]{{1,64}}:{_LIKE}", "password"),
    ("dsonar.login=", r"(?P<secret>[0-9a-f]{40})", "token"),
    ("mot de passe", rf"[ ]{{0,2}}:[ ]{{0,2}}{_LIKE}", "password"),
    ("contrase", rf"(?:\xc3\xb1|\\{{1,64}}u00f1)a[ ]{{0,2}}:[ ]{{0,2}}{_LIKE}", "password"),
    ("convertto-securestring", rf"(?:{_NEXT}-String)?{_NEXT}{_VALUE}", "password"),
    ("*:*:*:", rf"[A-Za-z_][\w.-]{{0,63}}:{_LIKE}", "password"),
    ("password  ", rf"[ \t]{{0,30}}\\{{0,63}}[\"']?{_LIKE}", "password"),  # a line of a configuration
    ("password '", rf"{_LIKE}'", "password"),  # SQL, as the next one
    ("identified by ", rf"\\{{0,63}}[\"']{_LIKE}", "password"),
    ("auth=(", _LOGIN_STRINGS, "password"),
    ("basicauth(", _LOGIN_STRINGS, "password"),
    ("set_password(", rf"\\{{0,63}}[\"'](?!\)){_VALUE}", "password"),
    ("type=", rf"\\{{0,63}}[\"']password\\{{0,63}}[\"'][^<>]{{0,256}}?[ \t]value=\\{{0,63}}[\"']{_VALUE}", "password"),
    ("csrf-token", r"\\{0,63}[\"'][ \t]{1,8}content=\\{0,63}[\"'](?P<secret>[A-Za-z0-9+/=_-]{16,}+)", "token"),
    ("key=", rf"(?<=[?&]key=)(?P<secret>{_MIXED}[A-Za-z0-9_-]{{24,}}+)", "api-key"),
    *((f"{word}/", rf"(?P<secret>{_RANDOM}[A-Za-z0-9_-]{{20,}}+)", "token") for word in ("reset-password", "password-reset")),
    *((f"pass{end} is ", rf"\\{{0,63}}[\"'`]?{_MIXED}(?=[^\s]{{8}}){_VALUE}", "password") for end in ("word", "phrase")),
    ("token is ", rf"\\{{0,63}}[\"'`]?(?P<secret>{_MIXED}[A-Za-z0-9_-]{{20,}}+)", "token"),
    ("api key ", rf"(?:is[ ])?\\{{0,63}}[\"'`]?(?P<secret>{_MIXED}[A-Za-z0-9_-]{{20,}}+)", "api-key"),
    ("put-parameter", rf"(?={_OPTIONS}SecureString){_OPTIONS}--value(?:=|{_NEXT}){_VALUE}", "password"),  # AWS, as the next one
    ("keyvault secret set", rf"{_OPTIONS}--value(?:=|{_NEXT}){_VALUE}", "password"),
    ("dockerconfigjson", rf"{_ASSIGNED}(?P<secret>[A-Za-z0-9+/]{{40,}}+={{0,2}})", "password"),
    ("token-", r"[a-z0-9]{5}:(?P<secret>[a-z0-9]{54})(?![a-z0-9])", "token"),  # Rancher
    ("/t/", rf"(?P<secret>[a-z]{{2}}-{_UUID})(?=/)", "token"),  # Anaconda
    ("creds", rf"(?:=|{_NEXT})[^\s\"':\\]{{1,64}}:{_LIKE}", "password"),  # skopeo
    ("routing_key", rf"{_ASSIGNED}(?P<secret>[0-9a-f]{{32}})(?![0-9a-f])", "token"),  # PagerDuty
    ("bearer_auth(", _LIKE_STRING, "bearer"),  # Rust, as the next one
    ("basic_auth(", rf"{_QUOTE}[^\s\"'\\]{{1,128}}{_QUOTE},[ ]?(?:Some\()?{_LIKE_STRING}", "password"),
    ("credentials.basic(", _LOGIN_STRINGS, "password"),
    ("--secret-string", rf"(?:=|{_NEXT}){_LIKE}", "password"),
    ("bundle config ", rf"{_NEAR}[\w-]{{1,64}}\.[\w.-]{{1,64}}{_NEXT}[\w.-]{{1,64}}:{_LIKE}", "password"),
    ("random_password", r"[\x00-\xff]{0,512}?\"result\\{0,63}\"[ ]?:[ ]?\\{0,63}\"" + _VALUE, "password"),  # Terraform
    ("secret_id", rf"{_ASSIGNED}(?P<secret>{_UUID})", "password"),  # Vault
    ("snyk auth ", rf"(?P<secret>{_UUID})", "token"),
    ("codecov", rf"{_NEAR}(?<![\w-])-t{_NEXT}(?P<secret>{_UUID})", "token"),
    ("bw_session=", rf"(?:{_QUOTE})?(?P<secret>[A-Za-z0-9+/]{{86}}==)", "token"),  # Bitwarden
    ("client(", rf"{_QUOTE}AC[0-9a-f]{{32}}{_QUOTE},[ ]?{_QUOTE}(?P<secret>[0-9a-f]{{32}})", "token"),  # Twilio
    (".webhook.office.com/", r"webhookb2/(?P<secret>[0-9A-Za-z@/_-]{40,}+)", "token"),
    ("hooks.zapier.com/", r"hooks/catch/(?P<secret>[0-9]{4,}/[A-Za-z0-9]{5,}+)", "token"),
    ("/api/webhooks/", r"(?P<secret>[0-9]{15,22}/[A-Za-z0-9_-]{30,}+)", "token"),
)


#: The private members of a JSON web key, at any depth of nesting.
_JWK_PART = re.compile(rb"\\{0,63}\"(?:d|k|p|q|dp|dq|qi)\\{0,63}\"\s{0,8}:\s{0,8}\\{0,63}\"([A-Za-z0-9_-]{16,}+)")


def find_jwks(data: bytes, low: bytes) -> Iterator[Span]:
    """Yield the private members of JSON web keys: objects that have a `kty`."""
    at = low.find(b"kty")
    while at >= 0:
        start, end = data.rfind(b"{", max(0, at - 8192), at), data.find(b"}", at, at + 8192)
        if start >= 0 and end >= 0:
            for found in _JWK_PART.finditer(data, start, end):
                if not is_placeholder(found[1]):
                    yield Span(*found.span(1), "private-key")
        at = low.find(b"kty", max(at + 3, end))  # an object is looked through once


_SECRET_ELEMENT = rb"(?:(?:client|app|access|refresh|auth|api|shared)[_-]?)?(?:token|secret|api_?key)"
_ELEMENT = re.compile(
    rb"(?i)<(?:[\w-]{1,32}:)?(?:(?:password|passwd|passphrase)(?: [^<>]{0,128})?>|"
    + _SECRET_ELEMENT
    + rb"(?: [^<>]{0,128})?>(?=[^\s<>]{0,256}[0-9]))(?![-$<{(])([^\s\"'\\<>]{1,256}+)</"
)


def find_elements(data: bytes, low: bytes) -> Iterator[Span]:
    """Yield the content of an element of XML whose name says that it is a password."""
    for found in _ELEMENT.finditer(data):
        if not is_placeholder(found[1]) and not _HARMLESS.fullmatch(found[1]):
            yield Span(*found.span(1), "password")


_TELLING_BEFORE = re.compile(rf"(?i)(?:password|passwd|passphrase|secret|token|api_?key)(?:{_QUOTE})?\]?\)?[ ]?\Z".encode())
_FALLBACK = re.compile(rf"[ ]?{_LIKE_STRING}".encode())


def find_fallbacks(sign: bytes, data: bytes, low: bytes) -> Iterator[Span]:
    """Yield the value that replaces a missing variable: `process.env.API_KEY || 'X'`."""
    at = data.find(sign)
    while at >= 0:
        found = _FALLBACK.match(data, at + len(sign))
        secret = found["secret"] if found is not None and _TELLING_BEFORE.search(data[max(0, at - 80) : at]) else b""
        if found is not None and secret and not is_placeholder(secret) and not _HARMLESS.fullmatch(secret):
            yield Span(*found.span("secret"), "secret")
        at = data.find(sign, at + 1)


_DSN = re.compile(rb"(?<![\w.:/-])[\w.-]{1,64}:([^\s\"'\\:/]{1,128})\Z")


def find_dsns(sign: bytes, data: bytes, low: bytes) -> Iterator[Span]:
    """Yield the password of a data source of Go: `ann:X@tcp(db:3306)/shop`."""
    at = low.find(sign)
    while at >= 0:
        found = _DSN.search(data, max(0, at - 200), at)
        if found is not None and not is_placeholder(found[1]):
            yield Span(*found.span(1), "password")
        at = low.find(sign, at + 1)


_compiled = lru_cache(maxsize=None)(re.compile)  # at the first need: most are never met


def find_in_form(trigger: bytes, form: bytes, kind: str, data: bytes, low: bytes) -> Iterator[Span]:
    """Yield the span of the `secret` group at each place where the first word of the form occurs."""
    at = low.find(trigger)
    while at >= 0:
        found = _compiled(form).match(data, at + len(trigger))
        if found is not None:
            start, end = found.span("secret")
            secret = data[start:end]
            if not is_placeholder(secret) and not _HARMLESS.fullmatch(secret):
                yield Span(start, end, kind)
        at = low.find(trigger, at + 1)


COMMANDS: tuple[Finder, ...] = (
    *(Finder(word, partial(find_in_form, word.encode(), form.encode("latin-1"), kind)) for word, form, kind in FORMS),
    Finder("</", find_elements),
    Finder("kty", find_jwks),
    *(Finder(sign, partial(find_fallbacks, sign.encode())) for sign in ("||", "??")),
    *(Finder(sign, partial(find_dsns, sign.encode())) for sign in ("@tcp(", "@unix(")),
)
