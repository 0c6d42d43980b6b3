"""Secrets that their place in a file, a log or a command line reveals, for `test_redact_kinds`, and texts that look like them."""

# ruff: noqa: E501 - tables
from __future__ import annotations

from tests.core.redact.planted import HEX, PW2, made

TOK, B64, URL64 = made(40), made(43) + "=", made(43)
LINE = made(60)
TEXTS: dict[str, tuple[str, str]] = {
    "bundle variable": ('BUNDLE_GEMS__CORP__IO: "ci:{}"', PW2), "prometheus bearer": ("authorization:\n  type: Bearer\n  credentials: {}", TOK),
    "acme hmac": ('"EabKid":"x","HmacEncoded":"{}"', URL64), "openvpn login": ("<auth-user-pass>\nann\n{}\n</auth-user-pass>", PW2),
    "snmp auth": ('createUser ann SHA "{}" AES', PW2), "snmp privacy": ('createUser ann SHA-256 "x" AES {}', PW2),
    "postfix": ("[smtp.h.example]:587 ann:{}", PW2), "jenkins": ("<hudson.util.Secret>{}</hudson.util.Secret>", B64), "jenkins braces": ("<hudson.util.Secret>{{{}}}</hudson.util.Secret>", B64),
    "odbc braces": ("Driver={{SQL}};Uid=ann;Pwd={{{}}};", made(14)), "appid": ("GET /v2/forecast?lat=1&appid={}", made(32, HEX)),
    "curl flags": ("curl -su ann:{} https://h", PW2), "curl flags list": ('["curl","-fsSLu","ann:{}"]', PW2), "ab": ("ab -A ann:{} -n 10 https://h/", PW2),
    "openssl K": ("openssl enc -aes-256-cbc -K {} -iv 00", made(64, HEX)), "oc": ("oc login -u ann -p {}", PW2), "etcdctl": ("etcdctl --user root:{} get x", PW2),
    "doctl": ("doctl auth init -t {}", made(64, HEX)), "p4": ("p4 -u ann -P {} sync", PW2), "nuget push": ("dotnet nuget push a.nupkg -k {} -s https://h", TOK),
    "duckdb": ("CREATE SECRET s (TYPE S3, KEY_ID 'x', SECRET '{}');", TOK), "dbpass": ("my $dbpass = '{}';", PW2), "userpass": ("userpass={}", PW2),
    "hmac": ('hmac.new(b"{}", text, hashlib.sha256)', TOK), "create hmac": ("crypto.createHmac('sha256', '{}')", TOK), "cookie parser": ("cookieParser('{}')", TOK),
    "cipher": ("crypto.createDecipheriv('aes-256-cbc', Buffer.from('{}', 'hex'), iv)", made(64, HEX)), "cipher text": ("createCipheriv('aes-256-gcm', '{}', iv)", made(32)),
    "ldap bind": ('conn.simple_bind_s("cn=admin,dc=h", "{}")', PW2),
    "ssh2": ('---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----\nComment: "x"\n{}\n---- END SSH2 ENCRYPTED PRIVATE KEY ----', LINE),
    "end of a key": ("{}\n-----END RSA PRIVATE KEY-----", LINE), "end of a key, more lines": ("{}\n" + made(64) + "\nAb1+/w==\n-----END PRIVATE KEY-----", LINE),
    "cut out of a key": ("-----BEGIN RSA PRIVATE KEY-----\n" + made(64) + "\n…12 tokens truncated…" + made(20) + "\n{}\nq7==\n-----END RSA PRIVATE KEY-----", LINE),
    "minisign": ("untrusted comment: minisign encrypted secret key\nRWRTY0Iy{}", made(200)), "cookies.txt": ("#HttpOnly_.h.example\tTRUE\t/\tTRUE\t1900000000\tsessionid\t{}", made(32)),
    "kubernetes websocket": ("Sec-WebSocket-Protocol: base64url.bearer.authorization.k8s.io.{}", made(60)),
    "guillemets": ("Das Passwort lautet »{}«.", PW2), "backticks": ("Use password `{}` for staging.", PW2), "key in backticks": ("the API token `{}` is", TOK), "arrow": ("API key → {}", TOK),
    "wide colon": ("password\uff1a{}", PW2), "kennwort": ("Kennwort: {}", PW2), "senha": ("senha: {}", PW2),
    "coloured": ("\x1b[32mpassword\x1b[0m: \x1b[33m{}\x1b[0m", PW2), "no-break space": ("password:\u00a0{}", PW2), "zero width": ("password\u200b: {}", PW2),
    "android": ('<string name="api_key">{}</string>', made(32)), "here document": ("password = <<EOT\n{}\nEOT", PW2), "indented here document": ("  secret_key = <<-EOF\n    {}\n  EOF", PW2),
    "mosquitto bridge": ("remote_username ann\nremote_password {}\n", PW2), "end of a configuration": ("user ann\npassword {}\n", PW2), "android x": ('<string name="api_key">{}</string>', "X2" + made(30)),
    "expect lines": ('expect "Password:"\nsend -- "{}\\r"', PW2),
}  # fmt: skip
HARMLESS = [
    "etcdctl --user root get x", "ab -n 100 -c 10 https://h/", "tab -A x:y1", "p4 -u ann sync -P4", "x.mp4 -P Xa7bcdefg", "oc login -u system:admin", "doctl auth init --context prod2",
    "openssl enc -aes-256-cbc -in a2 -out b2 -pbkdf2", "createUser(name, role2)", "CREATE USER ann2 WITH NOSUPERUSER;", "hmac.new(key, text2, hashlib.sha256).hexdigest()", "hmac.new(self.key, b'message', 'sha256')",
    "hmac.new(b'key', b'text2', 'sha256')", "createHmac('sha256', key2)", "cookieParser(config.secret2)", "conn.simple_bind_s(self.bind_dn, self.bind_password2)", "password = <<EOT2", "curl -sSL https://h/install.sh2 | sh",
    "curl -su : https://h/v2", "curl -fsSLo out2 https://h:8080/a", "appid=com.example.app2", "&appid=440", "createDecipheriv('aes-256-gcm', key, iv2)", "Buffer.from('00ff00ff', 'hex')",
    '<string name="api_key_label">API key 2</string>', '<string name="password_hint">Use 8 signs!</string>', "»Passwort« ist ein Wort mit 8 Zeichen", "Use `password` and `token2` as names", "Use password `hunter` in the tests?",
    "the API key → Settings → Keys2", "Sec-WebSocket-Protocol: graphql-transport-ws", "password\u200b: required", "Kennwort: muss 8 Zeichen haben", "\x1b[32mpassword\x1b[0m: \x1b[33mvalid\x1b[0m", "dbpass = os.environ['X2']",
    "bypass = 'Rule12'", "compass = 'north1'", '"HmacAlgorithm":"HS256"', "credentials: 'same-origin'", "credentials:\n  mode: include2", "two-pass: pass1=ok pass2=ok", "cancellationToken: CancellationToken2",
    'WWW-Authenticate: Basic realm="x"', "authorization: Basic realm=\"x\"", "cookies=merged_cookies,", "SESSION_COOKIE=session_cookie", "class Cookie:\n    \"\"\"HTTP Cookie.\n\n    A class.\n    \"\"\"", ":param credential:\n    '''\n    params: dict = dict()\n    params['a2'] = 1",
    'print("shlex: token=" + repr(raw))\nprint("x2")', "headers.push('Authorization', 'Bearer [Some token]')", "[<user>[:<password>]@]<host>", "<protocol>://[<user>[:<password>]@]<hostname>[:<port>]",
    "aGVsbG8=\n-----END CERTIFICATE-----", "-----END PRIVATE KEY-----", "the marker\n-----END RSA PRIVATE KEY-----", "secret 'foo2'", "SECRET 'a_name_without_a_digit'", "x\tTRUE\t/\tTRUE", "a cell\t/srv/app2\tTRUE\t12\tname\tvalue",
    "Pwd={pwd};", "Pwd={password2};", "encrypted secret key\nof the app2",
]  # fmt: skip
