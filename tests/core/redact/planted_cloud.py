"""Passwords and keys of clouds, builds and code, for `test_redact_kinds`, and texts that look like them."""

# ruff: noqa: E501 - tables
from __future__ import annotations

from tests.core.redact.planted import B64, HEX, LOW, PW2, made, uu

SIGNS = "x7;?a+9MD*[UE<D7u<Im]d3P(d1T-y{KlG9RiD+(Q32v^*D[bsA/@_%*In9!lnDl"
TEXTS: dict[str, tuple[str, str]] = {
    "aws ssm": ("aws ssm put-parameter --name /p/db --type SecureString --value '{}'", PW2), "aws ssm first": ("aws ssm put-parameter --value {} --type SecureString --name /p/db", "hunterhunter"),
    "aws secret string": ("aws secretsmanager create-secret --name p/db --secret-string '{}'", PW2), "bundle config": ("bundle config set --global gems.example.net ann:{}", PW2),
    "terraform state": ('{{"type": "random_password", "instances": [{{"attributes": {{"length": 24, "result": "{}"}}}}]}}', PW2), "vault approle": ("vault write auth/approle/login role_id=r secret_id={}", uu()),
    "vault approle json": ('{{"secret_id": "{}"}}', uu()), "bitwarden": ('export BW_SESSION="{}"', made(86) + "=="),
    "keytool source": ("keytool -importkeystore -srcstorepass {} -srckeystore a.p12", PW2), "keytool target": ("keytool -importkeystore -deststorepass {} -destkeystore a.p12", PW2),
    "notarytool": ("xcrun notarytool submit a.zip --apple-id a --password {}", "qbcd-efgh-ijkl-mnop"), "wp-config": ("define( 'AUTH_KEY',         '{}' );", SIGNS), "wp salt": ("define('NONCE_SALT', '{}');", SIGNS),
    "wp password": ("define( 'DB_PASSWORD', '{}' );", PW2), "twilio client": ("Client('AC" + made(32, HEX).lower() + "', '{}')", made(32, HEX).lower()), "snyk auth": ("snyk auth {}", uu()),
    "codecov": ("bash <(curl -s https://codecov.io/bash) -t {}", uu()), "go data source": ('sql.Open("mysql", "app:{}@tcp(db:3306)/shop")', PW2), "go socket": ("app:{}@unix(/tmp/m.sock)/shop", PW2),
    "net use user": ("net use Z: \\\\srv\\share /user:ann {}", PW2), "rust some": ('Config {{ url: "https://x", api_key: Some("{}") }}', made(40)), "google callback": ("GET /callback?state=x&code={} HTTP/1.1", "4/0A" + made(40)),
    "curl user=": ("curl --user='admin:{}' http://h", PW2), "jwt.encode": ("jwt.encode({{'sub': 1}}, '{}', algorithm='HS256')", made(40)), "fernet": ("Fernet(b'{}')", made(43) + "="), "mysqli_connect": ("mysqli_connect('db', 'app', '{}', 'shop');", PW2),
    "perl": ("DBI->connect('dbi:Pg:dbname=shop', 'app', '{}')", PW2), "sbt": ('Credentials("Sonatype", "oss", "ann", "{}")', PW2), "pulumi": ("pulumi config set --secret dbPassword {}", PW2), "dockerconfigjson": (".dockerconfigjson: {}", made(80)),
    "rancher": ("rancher login https://r -t token-abcde:{}", made(54, LOW)), "az acr": ("az acr login -n acme -u acme -p {}", made(48)), "az keyvault": ("az keyvault secret set --vault-name kv --name db --value '{}'", PW2), "gcloud secrets": ("echo -n '{}' | gcloud secrets create db --data-file=-", PW2),
    "conda": ("conda config --set channel_alias https://conda.acme.org/t/{}/get", "ac-" + uu()), "ruby fallback": ("ENV['DB_PASSWORD'] || '{}'", PW2), "node fallback": ("const k = process.env.API_KEY ?? '{}';", PW2),
    "skopeo": ("skopeo copy --src-creds ann:{} docker://a docker://b", PW2), "pagerduty": ('{{"routing_key": "{}", "event_action": "trigger"}}', made(32, HEX).lower()), "rust bearer": ('.bearer_auth("{}")', made(40)), "rust basic": ('.basic_auth("ann", Some("{}"))', PW2), "okhttp": ('Credentials.basic("ann", "{}")', PW2),
    "many backslashes": (r'"{{\\\\\\"apiKey\\\\\\": \\\\\\"{}\\\\\\"}}"', B64.rstrip("=")),
}  # fmt: skip
HARMLESS = [
    'password: "{{ vault_db_password }}"', "token: ${{ secrets.NPM_TOKEN }}", "OPENAI_API_KEY=your-api-key-here", 'api_key="YOUR_API_KEY"', "OPENAI_API_KEY=sk-...", "api_key='your_api_key'",
    "aws ssm put-parameter --name /p/db --type String --value 'eu-west-1'", "aws ssm get-parameter --name /p/db --with-decryption", "aws secretsmanager get-secret-value --secret-id p/db-7", "bundle config set path vendor/bundle",
    "bundle config set --local without development:test", "vault write auth/approle/login role_id=r secret_id=$SECRET_ID", "snyk auth", "codecov -t unit", "listen@tcp(db:3306)", "@unix(/tmp/m.sock)", "net use Z: /delete", "api_key: Some(key)",
    "define( 'WP_DEBUG', false );", "define('DB_NAME', 'shop');", "random_password = random(8)", "PASSWORD=\"$1\"", "API_KEY=xxxxxxxx", "TOKEN=dummy", "ENV['DB_PASSWORD'] || raise", '"routing_key": "orders.created.eu1"', ".bearer_auth(token)", ".basic_auth(user, Some(password))", "a.password || b.password", "token ?? 'none'", "az keyvault secret show --name db", "/t/ab-cd/get", "password: none-of-your-business",
    "cd /home\nls -la\nfoo", "Filesystem /home\n", "next=%2Fhome\nfoo", "C:\\Users\nann", "/home\tx",
]  # fmt: skip
