"""The table of secrets in command lines, code, forms and addresses: X in `curl -u ann:X`, `sshpass -p X`, `setPassword("X")`.

Each row has three values: the kind of the secret, its triggers (lower-case texts, separated by `|`), and the form, which is a
pattern with the group `secret`. A form is tried only in a text that contains one of its triggers. `{name}` in a form stands for a
part, a pattern that several forms use. All parts have a bounded length. The module `commands` builds a finder from each row.
"""

from __future__ import annotations

#: Parts of the forms. A part with `?P<secret>` contains the secret.
PARTS: dict[str, str] = {
    # signs around an argument, at any depth of JSON
    "quote": r"\\{0,63}[\"']",
    "quoted": "{quote}?",
    "dquote": r"\\{0,63}\"",
    "blanks": r"[ \t]{1,8}",
    "eol": r"(?:\r?\n|\\{1,64}r\\{1,64}n|\\{1,64}n)",
    # the next line, also of a difference that pytest shows, of a comment, and with its number (cat -n, grep -n)
    "number": r"(?:[\w./-]{1,128}[:-])?[0-9]{1,6}(?:[:|\t-]|\\{1,64}t)",
    "line": r"{eol}[ \t]{0,24}(?:E[ ]{3,12})?(?:[-+#>]|//)?(?:{number})?[ \t]{0,24}",
    # from one argument to the next: blanks, or a comma in a list
    "next": r"(?:{blanks}+|{quote},[ \t]{0,4}+){quoted}",
    "either": "(?:=|{next})",
    "assigned": "(?:{quote})?[ ]?[:=][ ]?(?:{quote})?",
    # the arguments before an option: of one line, of one command, after a word that is short or common
    "within": r"[^\r\n|;]{0,512}?",
    "options": r"(?:(?![\r\n|;]|&&|\\{1,63}[nr])[\x00-\xff]){0,512}?",
    "near": r"[^\r\n|;]{0,96}?",
    "flags": "(?:{next}-[A-OQ-Za-z]{1,4}){0,4}",
    "alone": r"(?<![\w-])",
    "option": "{alone}-",
    "short_u": "-[a-zA-Z]{0,8}u",  # also with other options in front: `curl -su`
    "user_option": r"(?:{short_u}{quoted}(?=\w)|(?:{short_u}|--user|--proxy-user|-U)(?:={quoted}|{next}))",
    "password_option": "--(?:http-|ftp-|proxy-)?password",
    "argument": r"[^\s\"'\\]{1,128}",
    # values: any; with a digit or a sign, after what is often something else; long. What follows a quote that ends a string
    # is no value: redacting the comma would break the JSON.
    "sign": r"[^\x00-\x20\"'\\|;&<>]",
    "value": r"(?P<secret>(?![-$<{(\])]|(?<=[\"'])[,:}]){sign}{1,256}+)",
    "like": "(?={sign}{0,256}[0-9!#@^*+?]){value}",
    "string": "{quote}{like}",
    "random": r"(?=[^\s\"'<>\\]{0,256}[0-9])",
    "long": "(?P<secret>{random}[A-Za-z0-9+/_]{24,}+={0,2})",
    # signs of both cases and a digit, as random texts have, and no name of a method such as `SHA256`
    "mixed": "(?!(?i:(?:base|sha|utf|pbkdf)-?[0-9]|x-?(?:509|25519|448|86|64)|md5|hmac|oauth|aes|rsa|bcrypt|argon))"
    "(?={sign}{0,256}[0-9])(?={sign}{0,256}[a-z])(?={sign}{0,256}[A-Z!#@^*+?])",
    # no name of a type or a variable of code, such as `TokenKind2`
    "no_type": r"(?!(?:[A-Z]?[a-z]++)++[0-9]?\.?(?:[\s\"'\\,;\])\x1b]|\Z))",
    # a quote of prose in front of a secret, also as an escape
    "opening": r"(?:\\{0,63}[\"'`]|\xe2\x80[\x98-\x9e]|\xc2[\xab\xbb]|\\{1,64}u(?:201[89a-e]|00[ab]b))?",
    "tab": r"(?:\t|\\{1,64}t)",
    # names of secrets
    "NAME": "[A-Z][A-Z0-9_]{0,64}(?:TOKEN|SECRET|PASSWORD|PASSWD|_KEY|APIKEY)",
    "name": r"[\w.:-]{0,48}(?i:password|passwd|passphrase|secret|token|api_?key)",
    "field": r"[\w.-]{0,32}(?i:password|passwd|passphrase|secret|token|api_key|apikey)",
    "aws": "(?:aws_secret_access_key|aws_session_token|aws_access_key_id)",
    # two strings of code, the second of which is the password of the first; the last two of three
    "login_strings": "{quote}{argument}{quote},[ ]?{quote}{value}",
    "login_call": r"(?:{quote}[^\"'\r\n]{0,256}?{quote},[ ]?)?(?:{quote}{argument}{quote}|[\w.]{1,64}),[ ]?{string}",
    # commands that read a secret from their input
    "stdin": r"(?:kinit|cryptsetup|vercel[ ]env[ ]add|wrangler[ ]secret[ ]put|gcloud[ ]secrets|(?:docker|podman)[ ]secret"
    r"|pass[ ]insert|(?:docker|podman|helm|oras|skopeo|gh|glab|gpg)\b[^\r\n|;]{0,96}"
    r"--(?:password-stdin|with-token|stdin|passphrase-fd))",
    "attribute": r"{quote}(?:{name}|(?i:SAMLResponse)){quote}{blanks}value={quote}(?P<secret>[^\s\"'\\<>]{1,65536}+)",
    "part_headers": r"(?:[A-Za-z-]{1,32}:[^\r\n\\]{0,128}{eol}){0,3}",
    "uuid": "[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}",
    "key_lines": "(?P<secret>(?!redacted-)[A-Za-z0-9+/=]{1,64}(?:{eol}(?![A-Za-z-]{1,32}:)[A-Za-z0-9+/=]{1,64}){0,99}+)",
    # the hash of a password after a `$`: bcrypt, SHA-crypt, yescrypt, argon2
    "crypt": "[./A-Za-z0-9]",
    "hash": r"2[aby]\$[0-9]{2}\${crypt}{53}|(?:apr)?1\${crypt}{1,8}\${crypt}{22}"
    r"|[56]\$(?:rounds=[0-9]{1,9}\$)?{crypt}{1,16}\$(?:{crypt}{86}|{crypt}{43})|y\${crypt}{2,16}\${crypt}{1,64}\${crypt}{43}"
    r"|[PH]\${crypt}{31}|S\${crypt}{52}"  # phpass, Drupal
    r"|[89]\${crypt}{14}\${crypt}{43}|(?<=[\"' ]\$)9\$(?=[^\s\"']{0,80}[0-9])[A-Za-z0-9./-]{16,80}+"  # Cisco, Juniper
    r"|krb5[a-z]{2,6}\$[0-9]{1,2}\$[^\s\"'\\]{32,8192}+"
    r"|(?<=[0-9]\$)[A-Za-z0-9]{8,22}\$(?:[0-9a-f]{128}|[0-9a-f]{64})(?![0-9a-f])"  # Werkzeug
    r"|argon2i?d?\$v=[0-9]{1,3}\$m=[0-9,tp=]{5,40}\$[A-Za-z0-9+/]{8,64}\$[A-Za-z0-9+/]{16,128}",
}

FORMS: tuple[tuple[str, str, str], ...] = (
    # --- Commands: what follows an option, or a word of the command ---
    ("password", "curl", r"{within}{alone}{user_option}[^\s\"':\\]{0,128}:{value}"),
    ("password", "wget", r"{within}{alone}{password_option}{either}{value}"),
    ("password", "sshpass", "{next}-p(?:{next})?{value}"),
    ("password", "mysql", r"(?:dump|admin|import|show)?\b{within}{option}p{value}"),
    ("password", "mariadb", "(?:-[a-z]+)?{within}{option}p{value}"),
    ("password", "redis-cli", "{within}{option}a{next}{value}"),
    ("password", "login", r"{blanks}{argument}(?:{blanks}|{line})(?:password|passwd){blanks}{value}"),
    ("api-key", "configure", r"{next}set{next}[\w.-]{0,64}{aws}{next}{value}"),
    ("password", "smbclient", r"{options}{option}U(?:{next})?[^\s%\"'\\]{1,128}%{value}"),
    ("password", "ldap", "(?:search|modify|add|delete|whoami|passwd|compare){options}{option}w(?:{next})?{like}"),
    (
        "password",
        "login",
        r"(?:(?<=docker.login)|(?<=podman.login)|(?<=skopeo.login)|(?<=registry.login)|(?<=\",\"login)"
        r"|(?<=\", \"login)|(?<=\Aoc.login)|(?<=[^a-lo-z.]oc.login)){options}{option}p{either}{like}",
    ),
    ("password", "--service-principal", "{options}{option}p{either}{like}"),
    ("password", "mongo", r"(?:sh|dump|restore|export|import)?\b{options}{option}p{either}{like}"),
    ("password", "sqlcmd", "{options}{option}P(?:{next})?{like}"),
    ("password", "zip", "{flags}{next}-P{next}{like}"),
    ("password", "7z", r"[ar]?{next}[adelrtux]\b{options}{option}p{like}"),
    ("password", "http -a|https -a|http --auth|https --auth", r"{either}[^\s\"':\\]{1,128}:{value}"),
    ("bearer", "-a bearer |-auth-type bearer |-auth-type=bearer ", "(?:-a|--auth)(?:=|{blanks}){quoted}{long}"),  # httpie
    ("password", "lftp", r"{options}{option}u(?:{next})?[^\s,\"'\\]{1,128},{value}"),
    ("password", "echo ", r"[\"']?(?=[^\s|]{0,256}[0-9!#@^*+?]){value}[\"']?[ \t]{0,8}\|[ \t]{0,8}sudo{blanks}-S"),
    ("secret", "env ", r"(?:(?<=ENV )|(?<=setenv )){NAME}{blanks}{random}(?=[^\s]{12}){value}"),
    ("secret", "set -", r"[gxU]{1,3}{blanks}{NAME}{blanks}{quoted}{random}(?=[^\s]{12}){value}"),
    ("secret", "setx ", r"{NAME}{blanks}{quoted}{random}(?=[^\s]{12}){value}"),
    ("secret", "gh secret set", r"{near}{alone}(?:-b|--body){either}{like}"),
    ("password", "echo ", r"{quoted}[\w.-]{1,64}:{value}[\"'\\]{0,64}[ \t]{0,8}\|[ \t]{0,8}(?:sudo{blanks})?chpasswd"),
    ("password", "echo ", r"[\"']?{value}[\"']?[ \t]{0,8}\|[ \t]{0,8}(?:sudo{blanks})?passwd{blanks}--stdin"),
    ("password", "mc alias set", r"(?:{next}[^\s\"'\\]{1,256}){3}{next}{like}"),
    ("password", "net use ", r"{options}\\[^\s\"']{1,128}{blanks}(?:/user:[^\s\"']{1,64}{blanks})?(?!/){like}"),
    ("password", "snmp", r"(?:walk|get|set|bulkwalk|bulkget|getnext|table|status)\b{near}{option}A{next}{like}"),
    ("password", "snmp", r"(?:walk|get|set|bulkwalk|bulkget|getnext|table|status)\b{near}{option}X{next}{like}"),
    ("password", "snmp", r"(?:walk|get|set|bulkwalk|bulkget|getnext|table|status)\b{near}{option}c{next}{like}"),
    ("password", "snmp-server community |rocommunity|rwcommunity", r"6?[ \t]{0,8}{like}"),
    ("password", "set snmp community ", "{quoted}{like}"),  # Juniper
    ("password", "com2sec ", r"(?:[^\s]{1,64}{blanks}){2}{like}"),
    ("password", "curl", "{within}{option}-pass{either}{value}"),
    (
        "cookie",
        "curl",
        r"{within}{option}b(?:{next})?(?:[\w.-]{1,64}=[^;\s\"'\\]{0,256};[ ]?){0,8}?[\w.-]{1,64}="
        r"(?P<secret>(?!redacted-){random}[^;\s\"'\\&|<>]{12,}+)",
    ),
    ("password", "-storepass|-keypass|-srcstorepass|-srckeypass|-deststorepass|-destkeypass", "{next}{like}"),
    ("password", "-pwd ", "(?<= -pwd ){quoted}{like}"),
    ("password", "ssh-keygen", "{near}{option}[NP](?:{next})?{like}"),
    ("password", "twine", "{near}{option}p{either}{like}"),
    ("password", "freerdp", r"{near}[ \t]{quoted}/p:{value}"),
    ("password", "sqlplus", r"{near}(?<=[ \t\"'])[\w.-]{1,64}/(?P<secret>[^\s\"'\\/@]{1,128}+)@"),
    ("password", "net user ", r"[\w.-]{1,64}{blanks}(?!/)(?={sign}{6}){like}"),
    ("password", "rabbitmqctl", r"{next}(?:add_user|change_password){next}[^\s\"'\\]{1,64}{next}{like}"),
    ("token", "cargo login ", "(?P<secret>{random}[A-Za-z0-9_-]{20,}+)"),
    ("password", "http-basic.", r"[\w.-]{1,64}{next}[^\s\"'\\]{1,64}{next}{like}"),
    ("token", "pypi-token.", r"[\w.-]{1,64}{next}{like}"),
    ("password", "echo ", r"(?:-n[ ])?{quoted}{like}{quoted}[ \t]{0,8}\|[ \t]{0,8}{stdin}"),
    ("password", "printf ", r"(?:{quote}%s{quote}[ ])?{quoted}{like}{quoted}[ \t]{0,8}\|[ \t]{0,8}{stdin}"),
    ("password", "-stdin |sudo -s |cryptsetup |passwd |kinit ", "{near}<<<[ ]{0,4}{quoted}{like}"),
    ("password", "mosquitto_|ipmitool |bcp ", "{near}{option}P{next}{like}"),
    (
        "password",
        "rabbitmqadmin |cqlsh |cypher-shell |rdesktop |psexec |elasticsearch-users |useradd |unlock-keychain |az sql |az acr ",
        "{near}{option}p{next}{like}",
    ),
    ("password", "-generic-password |-internet-password ", "{near}{option}w{next}{like}"),
    ("password", "plink |pscp ", "{near}{option}pw{next}{like}"),
    ("password", "openssl enc |openssl aes-", "{near}{option}k{next}{like}"),
    ("api-key", "openssl enc |openssl aes-", "{near}{option}K{next}(?P<secret>[0-9A-Fa-f]{16,128}+)"),
    ("password", "ab -a ", r"(?<![.a-lo-z]ab -A ){quoted}[^\s\"':\\]{1,64}:{like}"),
    ("password", "etcdctl ", r"{near}--user{either}[^\s\"':\\]{1,64}:{value}"),
    ("token", "doctl auth init", "{near}{option}t{next}{long}"),
    ("password", "p4 ", r"(?<![.a-lo-z]p4 )(?<!\.mp4 ){near}{option}P{next}{mixed}{like}"),  # Perforce
    ("api-key", "nuget push |nuget delete ", "{near}{option}k{next}{long}"),
    ("password", "influx|isql", "{near}{option}password{next}{like}"),
    ("password", "nuget ", "{near}{option}Password{next}{like}"),
    ("password", "x11vnc ", "{near}{option}passwd{next}{like}"),
    ("password", "rar x |rar a |rar e ", "{near}{option}h?p{like}"),
    ("password", "signtool ", "{near}[ ]/p{next}{like}"),
    ("password", "schtasks ", "{near}[ ]/rp{next}{like}"),
    (
        "token",
        "config set ",
        r"(?:--[a-z-]{1,16}[ ])?[^\s\"'\\=]{0,128}(?i:token|password|passwd|secret|_auth|api_?key){next}"
        "{like}",
    ),
    (
        "secret",
        "user-secrets set",
        r"{next}[^\s\"'\\]{0,128}(?i:token|password|passwd|secret|key){quoted}{blanks}{quoted}"
        "{like}",
    ),
    ("api-key", "wandb login ", "(?P<secret>[0-9a-f]{40})"),
    ("token", "ngrok authtoken |add-authtoken |operator unseal ", "{long}"),
    ("password", "> auth ", "{like}"),  # the prompt of redis-cli
    (
        "password",
        "echo ",
        r"(?:-n[ ])?{quoted}{mixed}{like}{quoted}[ ]{0,4}>[ ]{0,4}[^\s|;&]{0,64}(?i:secret|password|passwd|token)",
    ),
    ("password", "assword:", r"(?:[^\r\n]|\r?\n){0,32}?send[ ](?:--[ ])?{string}"),  # expect
    ("password", "rootpw ", "(?:--plaintext{blanks})?{like}"),  # Kickstart
    ("password", "admin-password ", "{like}"),
    ("password", "wifi connect ", "{near}[ ]password{next}{like}"),
    ("password", "wpa_passphrase ", r"[^\s\"']{1,64}{next}(?={sign}{8}){like}"),
    ("password", "htpasswd -b", "[a-zA-Z0-9]{0,4}(?:{next}{argument}){2}{next}{like}"),
    ("password", "impdp |expdp |rman target ", r"[\w.-]{1,64}/(?P<secret>[^\s\"'\\/@]{1,128}+)@"),
    ("password", " connect to ", r"[\w.-]{1,64}[ ]user[ ][\w.-]{1,64}[ ]using[ ]{like}"),
    ("password", " -auth ", r"[\w.@-]{1,64}:{like}"),
    ("password", "convertto-securestring", "(?:{next}-String)?{next}{value}"),
    ("password", "put-parameter", "(?={options}SecureString){options}--value{either}{value}"),  # AWS
    ("password", "keyvault secret set", "{options}--value{either}{value}"),
    ("password", "creds", r"{either}[^\s\"':\\]{1,64}:{like}"),  # skopeo
    ("password", "--secret-string", "{either}{like}"),  # AWS
    ("password", "bundle config ", r"{near}[\w-]{1,64}\.[\w.-]{1,64}{next}[\w.-]{1,64}:{like}"),
    ("token", "snyk auth ", "(?P<secret>{uuid})"),
    ("token", "vault", r"{next}login(?:{next}-[a-z=-]{1,24}){0,2}{next}(?P<secret>s\.[A-Za-z0-9]{20,}+)"),
    ("token", "::add-mask::", "(?={sign}{6}){like}"),  # GitHub Actions
    ("token", "codecov", "{near}{option}t{next}(?P<secret>{uuid})"),
    # --- Code, markup and SQL ---
    ("password", "define(", "[ ]?{quote}{name}{quote},[ ]{0,16}{quote}{value}"),
    (
        "password",
        "define(",
        "[ ]?{quote}[A-Z_]{4,24}_(?:KEY|SALT){quote},[ ]{0,16}'"
        r"(?P<secret>(?!redacted-)[^'\"\\\r\n]{40,}+)'",
    ),
    ("password", "setpassword(", r"{quote}(?!\)){value}"),
    ("password", "networkcredential(", r"{dquote}[^\"\\]{0,64}{dquote},[ ]?{dquote}{value}"),
    ("password", "key=|name=", "{attribute}"),
    (
        "password",
        "key=|name=",
        r"{quote}{name}{quote}[ ]?>(?P<secret>(?=[^\s<>]{0,256}[0-9!#@^*+?])(?![$%{])[^\s<>\"'\\]{4,256}+)</",
    ),
    ("password", "set password for ", r"[^\r\n=;]{1,128}=[ ]?(?:(?i:password)\()?{string}"),
    ("password", "identified with ", r"[\w'\"]{1,64}[ ](?i:by)[ ]{string}"),
    ("password", "password=n'|password = n'", "{like}"),
    ("password", "crypt(", "'(?=[^']{1,256}',[ ]?gen_salt){like}"),  # PostgreSQL
    ("password", "pgp_sym_", r"(?:en|de)crypt(?:_bytea)?\([^\r\n,]{1,128},[ ]?'{like}"),
    ("secret", "setenv(|set_var(|putenv(", "{quote}{NAME}{quote},[ ]?{string}"),
    ("password", "mysqli(|pdo(|getconnection(|passwordauthentication(|.login(|mysqli_connect(|dbi->connect(", "{login_call}"),
    ("password", "credentials(", r"(?:{quote}[^\"'\r\n]{1,64}{quote},[ ]?){3}{string}"),  # sbt
    ("secret", "jwt.encode(|jwt.decode(", r"[^\r\n]{1,200}?,[ ]?{quote}(?=[^\s\"']{12}){like}{quote},[ ]?algorithm"),
    ("secret", "fernet(", "b?{quote}(?P<secret>[A-Za-z0-9_-]{43}=)"),
    ("secret", "jwt.sign(", r"[^\r\n'\"]{1,64},[ ]?{quote}(?=[^\s\"']{12}){like}"),  # Node
    ("password", "password '", "{like}'"),
    ("password", "identified by ", "{string}"),
    ("password", "auth=(|auth = (|basicauth(", "{login_strings}"),
    ("password", "set_password(", r"{quote}(?!\)){value}"),
    ("password", ".password(|.passphrase(|.secret(|.token(|.api_key(|.apikey(", "{quote}{mixed}(?={sign}{6}){value}"),
    ("password", "pragma key|pragma rekey", r"[ ]?=[ ]?{string}"),  # SQLCipher
    ("password", "type=", r"{quote}password{quote}[^<>]{0,256}?[ \t]value={quote}{value}"),
    ("password", "storepassword |keypassword ", "{string}"),  # Gradle
    ("password", "password>", "(?:{line}|[ ]{0,8})<Value>{value}"),  # an answer file of Windows
    (
        "secret",
        "value: ",
        r"{quoted}{random}(?=[^\s]{8}){value}{quoted}{eol}[ \t]{1,24}(?:name|key):[ ]{quoted}(?:{NAME}|{name})",
    ),
    ("password", "variable ", r"{quote}{name}{quote}[ ]?\{[^{}]{0,256}?default[ ]{1,16}=[ ]?{string}"),  # Terraform
    ("token", "csrf-token", "{quote}{blanks}content={quote}(?P<secret>[A-Za-z0-9+/=_-]{16,}+)"),
    ("bearer", "bearer_auth(", "{string}"),  # Rust
    ("password", "basic_auth(", r"{quote}{argument}{quote},[ ]?(?:Some\()?{string}"),
    ("password", "credentials.basic(", "{login_strings}"),
    ("token", "client(", "{quote}AC[0-9a-f]{32}{quote},[ ]?{quote}(?P<secret>[0-9a-f]{32})"),  # Twilio
    ("secret", "hmac.new(", r"[bf]?{quote}(?=[^\s\"']{16}){mixed}{value}{quote}"),
    ("secret", "createhmac(", r"{quote}[\w-]{3,16}{quote},[ ]?{quote}(?=[^\s\"']{16}){like}"),
    ("secret", "cookieparser(", r"{quote}(?=[^\s\"']{16}){like}"),
    ("api-key", "cipheriv(", r"{quote}[\w-]{4,24}{quote},[ ]?(?:Buffer\.from\()?{quote}(?=[^\s\"']{16}){like}"),
    ("password", "simple_bind_s(|simple_bind(", "{login_call}"),  # LDAP
    ("api-key", "secret '", "(?P<secret>{random}[A-Za-z0-9+/_-]{20,}+={0,2})'"),  # DuckDB
    ("api-key", "<string name=", "{quote}{name}{quote}>(?P<secret>{mixed}[A-Za-z0-9+/=_.-]{12,}+)</"),  # Android
    # --- Addresses, cookies and fields ---
    ("password", "pwd={", r"(?P<secret>{mixed}[^\s\"'{}\\]{8,128}+)\}"),  # ODBC
    ("api-key", ".infura.io/", r"(?:ws/)?v3/(?P<secret>[0-9a-f]{32})(?![0-9a-f])"),
    ("api-key", ".g.alchemy.com/", "v2/(?P<secret>[A-Za-z0-9_-]{32})(?![A-Za-z0-9_-])"),
    ("api-key", ".quiknode.pro/", "(?P<secret>[0-9a-f]{40})(?![0-9a-f])"),
    ("token", "tid=", r"(?P<secret>[0-9a-f]{32};exp=[0-9]{10}[^\s\"'\\]{0,2048}+)"),  # Copilot
    ("api-key", "appid=", "(?<=[?&]appid=)(?P<secret>[0-9a-f]{32})(?![0-9a-f])"),
    ("bearer", "bearer.authorization.k8s.io.", "(?P<secret>[A-Za-z0-9_-]{16,}+)"),
    (
        "cookie",  # a line of cookies.txt
        r"	/|\t/",
        r"[^\s\\]{0,128}{tab}(?:TRUE|FALSE){tab}[0-9]{1,12}{tab}[^\s\\]{1,128}{tab}(?P<secret>{random}[^\s\"'\\]{12,}+)",
    ),
    ("api-key", "accountkey=|sharedaccesskey=", "(?P<secret>[A-Za-z0-9+/%]{20,}+={0,2})"),
    ("token", "sig=", "(?i)(?<=[?&;]sig=)(?P<secret>[A-Za-z0-9%+/_-]{20,}+=*)"),
    ("token", "signature=", "(?i)(?<=[?&;-]signature=)(?P<secret>[A-Za-z0-9%+/_~-]{20,}+=*)"),
    ("token", "code=", "(?i)(?<=[?&]code=)(?P<secret>(?:4/)?(?=[A-Za-z._~%-]{0,256}[0-9])[A-Za-z0-9._~%-]{10,}+)"),
    ("token", "1//0", "(?P<secret>[A-Za-z0-9_-]{30,}+)"),
    ("token", "hooks.slack.com/", "(?:services|workflows|triggers)/(?P<secret>[A-Za-z0-9/_-]{16,}+)"),
    ("password", "psk=", "{dquote}?{like}"),
    ("secret", "_pat=", "(?<=[A-Z]_PAT=){quoted}(?P<secret>[A-Za-z0-9_-]{20,}+)"),
    ("password", "password</key>", r"(?:{line}|[ \t]{0,16})<string>{value}"),  # a property list, as the next one
    ("token", "token</key>|secret</key>|apikey</key>|api_key</key>", r"(?:{line}|[ \t]{0,16})<string>(?={sign}{8}){like}"),
    ("cookie", "connect.sid=", "(?P<secret>[A-Za-z0-9%._+/-]{24,}+)"),
    ("cookie", "phpsessid=", "(?P<secret>[A-Za-z0-9,-]{20,}+)"),
    ("cookie", "jsessionid=", "(?P<secret>[A-Za-z0-9.!-]{20,}+)"),
    ("cookie", "_session=", "(?<=[a-z]_session=)(?P<secret>[A-Za-z0-9%._+/-]{24,}+)"),
    ("token", " mac=", "{dquote}(?P<secret>[A-Za-z0-9+/]{20,}={0,2})"),  # Hawk
    ("token", "maker.ifttt.com/trigger/", r"[\w-]{1,64}/(?:json/)?with/key/(?P<secret>[A-Za-z0-9_-]{20,}+)"),
    ("token", ".make.com/", r"(?<=[0-9]\.make\.com/)(?P<secret>[a-z0-9]{30,}+)"),
    ("token", "/open-apis/bot/v2/hook/|/cgi-bin/webhook/send?key=", "(?P<secret>[0-9a-f-]{36})"),
    ("password", "otpauth-migration://offline?data=", "(?P<secret>[A-Za-z0-9%+/=_-]{20,}+)"),
    ("token", "response=", "{dquote}(?P<secret>[0-9a-f]{32}|[0-9a-f]{64}){dquote}"),  # Digest
    ("token", "signature=", r"(?i)(?<=[\s,]signature=)(?P<secret>[0-9a-f]{64})(?![0-9a-f])"),
    ("token", "dsonar.login=", "(?P<secret>[0-9a-f]{40})"),
    ("api-key", "key=", "(?<=[?&]key=)(?P<secret>{mixed}[A-Za-z0-9_-]{24,}+)"),
    ("token", "reset-password/|password-reset/", "(?P<secret>{random}[A-Za-z0-9_-]{20,}+)"),
    ("token", "/t/", "(?P<secret>[a-z]{2}-{uuid})(?=/)"),  # Anaconda
    ("token", "bw_session=", "(?:{quote})?(?P<secret>[A-Za-z0-9+/]{86}==)"),  # Bitwarden
    ("token", ".webhook.office.com/", "webhookb2/(?P<secret>[0-9A-Za-z@/_-]{40,}+)"),
    ("token", "hooks.zapier.com/", "hooks/catch/(?P<secret>[0-9]{4,}/[A-Za-z0-9]{5,}+)"),
    ("token", "/api/webhooks/", "(?P<secret>[0-9]{15,22}/[A-Za-z0-9_-]{30,}+)"),
    # --- Files, hashes and prose ---
    ("password", "form-data", ";[ ]?name={quoted}{field}{quoted}{eol}{part_headers}{eol}{value}"),
    ("password", ":5432:", r"[\w*.-]{1,64}:[\w*.-]{1,64}:{value}"),  # pgpass
    ("password", "jdbc:oracle:", r"[a-z]{1,8}:[^\s/\"'\\@]{1,64}/(?P<secret>[^\s\"'\\@]{1,128}+)@"),
    ("password", "bindpw", "{blanks}{like}"),
    ("password", "bundle_", r"[A-Z0-9_]{1,128}:[ ]{quoted}[\w.-]{1,64}:{like}"),
    ("bearer", "type: bearer", "{line}credentials:[ ]{quoted}{like}"),  # Prometheus
    ("api-key", "hmacencoded", "{assigned}(?P<secret>[A-Za-z0-9+/_-]{20,}+={0,2})"),  # ACME
    ("password", "<auth-user-pass>", r"{eol}[^\s<\\]{1,128}{eol}{like}"),  # OpenVPN
    ("password", "createuser ", "{argument}{blanks}[A-Z0-9-]{2,8}{blanks}{quoted}{like}"),  # SNMP, and the next one
    (
        "password",
        "createuser ",
        "{argument}{blanks}[A-Z0-9-]{2,8}{blanks}{quoted}{argument}{quoted}{blanks}[A-Z]{3}{blanks}{quoted}{like}",
    ),
    ("password", "]:587 |]:465 |]:25 ", r"[^\s:\"'\\]{1,128}:{like}"),  # Postfix
    ("password", "util.secret>", r"\{?(?P<secret>[A-Za-z0-9+/]{20,}+={0,2})"),  # Jenkins
    ("private-key", "encrypted secret key", "{line}(?P<secret>RW[A-Za-z0-9+/]{80,}+={0,2})"),  # minisign
    ("password", "wpa-psk ", "(?![Ww][Pp][Aa]-){quoted}(?={sign}{8}){like}"),
    ("password", ": psk |: xauth |: eap ", "{string}"),  # IPsec
    ("password", " enc ", r"(?<= ENC )(?P<secret>(?!redacted-)[A-Za-z0-9+/]{20,}+={0,2})"),  # Fortinet
    ("api-key", "key = aq", "(?<=key = AQ)(?P<secret>[A-Za-z0-9+/]{30,}+={0,4})"),  # Ceph
    ("password", "password 7 |key 7 ", "(?P<secret>[0-9A-Fa-f]{8,64}+)(?![0-9A-Za-z])"),  # Cisco
    ("password", "wifi:", r"[^\r\n\"]{0,128}?;P:(?P<secret>[^\s;\"'\\]{4,64})"),  # in a QR code
    ("password", "{ssha|{smd5", r"[0-9]{0,3}\}(?P<secret>[A-Za-z0-9+/]{20,}+={0,2})"),  # LDAP
    ("secret", "secret ", "{quote}(?P<secret>[A-Za-z0-9+/]{20,}+={1,2}){quote}"),  # BIND
    ("token", "oauth:", "(?P<secret>[a-z0-9]{30})(?![A-Za-z0-9])"),  # Twitch
    ("password", "pbkdf2_sha", r"[0-9]{1,3}\$[0-9]{1,9}\$(?P<secret>{crypt}{4,64}\$[A-Za-z0-9+/]{20,}={0,2})"),
    (
        "password",
        "scram-sha-",
        r"[0-9]{1,3}\$(?P<secret>[0-9]{1,9}:[A-Za-z0-9+/]{8,}={0,2}\$[A-Za-z0-9+/]{20,}={0,2}:[A-Za-z0-9+/]{20,}={0,2})",
    ),
    ("private-key", "private-mac:", r"[ \t]{0,4}(?P<secret>[0-9a-f]{40,64})"),
    ("password", "$", r"(?P<secret>(?<=access_token\$)(?:production|sandbox)\$[0-9a-z]{16}\$[0-9a-f]{32}|{hash})"),  # hashes
    ("token", "1000.", r"(?P<secret>[0-9a-f]{32}\.[0-9a-f]{32})(?![0-9a-f])"),  # Zoho
    ("private-key", "private-lines:", r"[ \t]{0,4}[0-9]{1,3}{eol}{key_lines}"),
    ("password", "requirepass |masterauth ", "{like}"),
    ("secret", "name: ", r"[\"']?{NAME}[\"']?{line}value:[ \t]{1,4}{quoted}{like}"),  # Kubernetes
    ("bearer", "authorization ", "{quote}(?i:basic|bearer)[ ](?P<secret>[A-Za-z0-9+/._~-]{12,}+=*)"),  # nginx
    ("password", "mot de passe", "[ ]{0,2}:[ ]{0,2}{like}"),
    ("password", "kennwort|passwort|wachtwoord|senha", "[ ]{0,2}(?::|=|lautet|ist|is)[ ]{0,2}{opening}{mixed}{like}"),
    ("password", "contrase", r"(?:\xc3\xb1|\\{1,64}u00f1)a[ ]{0,2}:[ ]{0,2}{like}"),
    ("password", "*:*:*:", r"[A-Za-z_][\w.-]{0,63}:{like}"),  # pgpass
    ("password", "password</t", r"[dh]>(?:{line}|[ ]{0,8})<td[^<>]{0,64}>{like}"),
    ("token", "token</t|secret</t|key</t", r"[dh]>(?:{line}|[ ]{0,8})<td[^<>]{0,64}>(?={sign}{8}){mixed}{like}"),
    ("api-key", "unseal key ", r"[0-9]{1,2}:[ ](?P<secret>[A-Za-z0-9+/]{40,}+={0,2})"),  # Vault
    (
        "password",
        "password ",
        r"(?:(?<=[\s_]password[ ])|(?<=\\npassword[ ])){mixed}(?={sign}{6}){value}(?={eol}|{dquote}|\Z)",
    ),  # a line
    ("password", "password  ", r"[ \t]{0,30}{quoted}{like}"),  # a line of a configuration
    ("password", "password ", r"(?=[A-Za-z]{sign}{0,64}[!#@^*?])(?=[^\s(]{8}){mixed}{value}(?=[\s.,;)\"'\\]|\Z)"),
    ("password", "pw: ", r"(?:(?<![\w-]pw:[ ])|(?<=\\npw:[ ])|(?<=[0-9]mpw:[ ])){quoted}{no_type}{mixed}(?={sign}{6}){value}"),
    ("password", "password for ", r"[^\r\n:;\"'\\]{1,48}?[ ]is[ ]{opening}{mixed}(?=[^\s]{8}){value}"),
    ("password", "password is |passphrase is ", "{opening}{mixed}(?=[^\\s]{8}){value}"),
    ("password", "password `|passphrase `", r"(?P<secret>{mixed}[^\s\"'`\\]{8,128}+)`"),
    ("token", "token ", r"\\{0,63}[\"'`]?(?P<secret>{mixed}[A-Za-z0-9_-]{32,}+)"),
    ("token", "token is ", r"\\{0,63}[\"'`]?(?P<secret>{mixed}[A-Za-z0-9_-]{20,}+)"),
    (
        "api-key",
        "api key",
        r"(?:\*\*)?[ ]?(?:is[ ]|[:=][ ]?|(?:-{1,2}>|\xe2\x86\x92|\\{1,64}u2192)[ ])?"
        r"(?:\*\*[ ])?\\{0,63}[\"'`]?(?P<secret>{mixed}[A-Za-z0-9_-]{20,}+)",
    ),
    ("password", "dockerconfigjson", "{assigned}(?P<secret>[A-Za-z0-9+/]{40,}+={0,2})"),
    ("token", "token-", "[a-z0-9]{5}:(?P<secret>[a-z0-9]{54})(?![a-z0-9])"),  # Rancher
    ("token", "routing_key", "{assigned}(?P<secret>[0-9a-f]{32})(?![0-9a-f])"),  # PagerDuty
    ("password", "random_password", r"[\x00-\xff]{0,512}?\"result{dquote}[ ]?:[ ]?{dquote}{value}"),  # Terraform
    ("password", "secret_id", "{assigned}(?P<secret>{uuid})"),  # Vault
)
