"""Passwords in commands, in SQL, code and prose, for `test_redact_kinds`, and texts that look like them."""

# ruff: noqa: E501 - tables
from __future__ import annotations

from tests.core.redact.planted import LOW, PW2, made

TOK = made(40)
TEXTS: dict[str, tuple[str, str]] = {
    "sql user": ("CREATE USER ann WITH PASSWORD '{}';", PW2), "sql alter": ("ALTER USER ann PASSWORD '{}'", PW2), "sql identified": ("CREATE USER 'ann'@'%' IDENTIFIED BY '{}';", PW2),
    "requests": ("requests.get(u, auth=('ann', '{}'))", PW2), "basic auth": ("HTTPBasicAuth('ann','{}')", PW2), "go basic auth": ('req.SetBasicAuth("ann", "{}")', PW2), "set_password": ("user.set_password('{}')", PW2),
    "keystore": ("keytool -storepass {} -list", PW2), "keypass": ("keytool -genkey -keypass '{}' -alias a", PW2), "curl pass": ("curl --cert c.pem --pass {} https://h", PW2),
    "curl cookie": ("curl -b 'sid={}' https://h", TOK), "curl cookies": ("curl -b 'theme=dark; sid={}; a=b' https://h", TOK), "ssh-keygen": ("ssh-keygen -t rsa -N '{}' -f k", PW2), "ssh-keygen old": ("ssh-keygen -p -P {} -f k", PW2),
    "twine": ("twine upload -u ann -p {} dist/*", PW2), "freerdp": ("xfreerdp /u:ann /p:{} /v:h", PW2), "sqlplus": ("sqlplus ann/{}@db", PW2), "net user": ("net user ann {} /add", PW2), "dsadd": ("dsadd user cn=x -pwd {}", PW2),
    "rabbitmqctl": ("rabbitmqctl add_user ann {}", PW2), "rabbitmqctl change": ("rabbitmqctl change_password ann {}", PW2), "cargo": ("cargo login {}", TOK), "poetry": ("poetry config http-basic.own ann {}", PW2), "poetry token": ("poetry config pypi-token.own {}", TOK),
    "redis": ("requirepass {}", PW2), "redis master": ("masterauth {}", PW2), "docker stdin": ("echo {} | docker login -u ann --password-stdin", TOK), "gh stdin": ("echo {} | gh auth login --with-token", TOK), "kinit": ("echo '{}' | kinit ann", PW2),
    "secure string": ('ConvertTo-SecureString "{}" -AsPlainText -Force', PW2), "secure string named": ("ConvertTo-SecureString -String '{}' -AsPlainText", PW2), "pgpass star": ("*:*:*:ann:{}", PW2), "msmtp": ("password       {}", PW2),
    "input": ('<input type="password" name="pw" value="{}">', PW2), "csrf": ('<meta name="csrf-token" content="{}">', TOK), "client secret": ("<clientSecret>{}</clientSecret>", TOK), "access token": ("<access_token>{}</access_token>", TOK),
    "maps": ("https://h/maps/api/js?key={}", TOK), "reset": ("https://h/reset-password/{}", made(32, LOW)), "reset of": ("https://h/password-reset/{}?x=1", made(32)), "german": ("Passwort: {}", "gR4" + "kV7pLw!x"), "french": ('{{"mot_de_passe":"{}"}}', PW2),
    "told": ("My password is {}", "gR4" + "kV7pLw!x"), "told phrase": ("The passphrase is `{}`", "gR4" + "kV7pLw!x"), "told token": ("The token is {}", TOK), "told key": ("Use the API key {} for it", TOK),
}  # fmt: skip
HARMLESS = [
    "The password is base64-encoded", "The password is SHA256-hashed", "the password is PBKDF2WithHmacSHA1", "password is required", "the password is 12345678", "The password is too short (8)", "passphrase is empty", "Your password is MD5-hashed1",
    "the token is valid", "token is eyJ", "The token is 7f3a2b1c9d8e7f6a5b4c3d2e1f0a9b8c", "the token is expired since 2026-01-01T12:00:00Z", "api key is missing", "the API key of the project", "an api key with 32 characters", "API key settings-page-of-2026",
    "password '", "Enter the password 'again'", "with password 'secret'", "the password 'hunter'", "IDENTIFIED BY PASSWORD", "identified by its name", 'identified by "name"', "identified by 'id1' and others".replace("id1", "id"),
    "auth=('ann', password)", "auth=(user, pw)", "auth=(None, None)", "HTTPBasicAuth(user, password)", "req.SetBasicAuth(user, pass)", "user.set_password(new_password)", "user.set_password('')", 'set_password("password")',
    "keytool -storepass $STOREPASS -list", "keytool -storepass", "-keypass ${KEYPASS}", "-pwd /tmp/x", "-pwd none", "ls -pwd now", "curl --passive https://h", "curl --pass $PASS https://h", "curl -b cookies.txt https://h", "curl -b 'theme=dark' https://h",
    "curl -b 'lang=en-US' https://h", "ssh-keygen -t ed25519 -N '' -f k", "ssh-keygen -lf k", "ssh-keygen -y -P '' -f k", "twine upload dist/*", "twine upload -r testpypi dist/x-1.0.tar.gz", "xfreerdp /v:h /port:3389", "sqlplus / as sysdba", "sqlplus ann@db", "sqlplus /nolog @a.sql",
    "net user ann /delete", "net user ann", "net user ann * /add", "rabbitmqctl list_users", "rabbitmqctl add_user ann", "rabbitmqctl set_user_tags ann administrator", "cargo login", "cargo login --registry own", "poetry config http-basic.own ann", "poetry config --list",
    "requirepass is not set", "requirepass foobared", "masterauth missing", "echo $TOKEN | docker login -u ann --password-stdin", "echo ok | gh issue create", "echo hello1 | cat", "echo ${PW} | kinit ann", "echo 1 | docker run -i x", "ConvertTo-SecureString $pw -AsPlainText",
    "ConvertTo-SecureString -AsPlainText -Force", "Read-Host -AsSecureString", "*:*:*:ann", "* * * * * run", "Address6.fromWildcard('2001:db8:*:*:*:*:*:*')", "*:*:*:*:*", "password       string", "password  the password of the user", "password  (optional)", "user  password  host",
    '<input type="password">', '<input type="password" value="">', '<input type="text" value="Tr0ub4dor">', '<meta name="csrf-token" content="">', '<meta name="csrf-param" content="authenticity_token">', "csrf-token header", "<clientSecret/>", "<clientSecret>${secret}</clientSecret>",
    "<nextToken>abc123</nextToken>", "<tokens>12</tokens>", "<maxTokens>4096</maxTokens>", "?key=value", "?key=a1", "https://h/?key=docs/guide/page-2.md", "https://h/?key=7f3a2b1c9d8e7f6a5b4c3d2e1f0a9b8c", "&key=550e8400-e29b-41d4-a716-446655440000", "https://h/reset-password/", "https://h/reset-password/confirm",
    "/reset-password/page-for-all-users", "password-reset/templates/email.html", "password-reset/2026", "Passwort vergessen?", "Passwort: ********", "Passwort ist falsch", '{"mot_de_passe":""}', "the passport number", "passe-partout", "sortpass 2",
    "key=lambda x: x[1]", "sorted(a, key=itemgetter1)", "primary key=AbcDef1", "type=password", "type='password' required", "auth=(", "basicauth()", "identified by 7 digits", "-storepass:env PW", "-keypass:file pw.txt",
    "the token is 1.2.3", "token is [0-9A-Z]+", "the password is read from $PGPASSFILE_1", "api key id 42", "net use is old", "xfreerdp /p", "the passphrase is at least 8 characters", "-b 'x=1'", "sqlplus -S /nolog", "twine check dist/a-1.0.whl",
    "auth=('ann', '')", "auth=('ann', os.environ['X1'])", "key=AIza", "?key=Page2", "requirepass=", "<form type='password'>", "password  |  string  | 8", "identified by (a1)", "kinit -k -t k.keytab host/x1",
    "password 'a' is too short", "reset-password/README.md", "POST /reset-password/ HTTP/1.1", "token is a JWT", "The token is stored in ~/.codex/auth.json", "The password is stored in /etc/app1/Config.d", "passphrase is asked for by ssh-add1",
    "net users are 12", "net user guide 2", "http-basic.auth", "pypi-token.txt", "the api key field", "api key rotation every 30d", "cookie -b flag", "curl -b", "sqlplus ann/x", "echo done1 | tee a", "echo v1.2.3 | gh release create --notes-file -",
]  # fmt: skip
