"""More kinds of secrets, which are made of a prefix and random signs as those of `test_redact_kinds`, and texts that look like them."""

# ruff: noqa: E501 - tables
from __future__ import annotations

import uuid
from random import Random

_RANDOM = Random(1616)
LETTERS = "jZWwyjqrrfrcOxcbDIwXXBNkFrpdzARQHGuPMkhJJt"
_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
HEX = "0123456789abcdef"
UP = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
LOW = "abcdefghijklmnopqrstuvwxyz0123456789"


def made(size: int, signs: str = _LETTERS) -> str:
    """Return random signs, with a digit and a letter of each case among the first of them."""
    lead = "".join(next(sign for sign in order if sign in signs) for order in ("7" + signs, "K" + signs, "q" + signs))
    return lead + "".join(_RANDOM.choice(signs) for _ in range(size - 3))


def uu() -> str:
    """Return a random uuid."""
    return str(uuid.UUID(int=_RANDOM.getrandbits(128), version=4))


PW = "Tr0ub4" + "dor&3z"
PW2 = "Zx9" + "kVq2L"
B64 = made(43) + "="
KEYS = {
    "slack user": "xox" + "p-" + "123456789012-123456789012-" + made(32, HEX), "slack config": "xoxe." + "xoxp-1-" + made(120),
    "slack cookie": "xox" + "d-" + made(60), "mapbox": "sk." + "eyJ1" + made(60) + "." + made(22), "plaid": "access-" + "production-" + uu(),
    "square app": "sq0" + "csp-" + made(43), "square access": "EAAA" + "l" + made(59), "braintree": "access_" + "token$production$" + made(16, LOW) + "$" + made(32, HEX),
    "amazon mws": "amzn." + "mws." + uu(), "yandex cloud": "AQVN" + made(36), "flutterwave": "FLW" + "SECK_TEST-" + made(32, HEX) + "-X",
    "easypost": "EZ" + "AK" + made(54), "infracost": "ico-" + made(32), "prefect": "pnu_" + made(36), "nvidia": "nvapi-" + made(64),
    "openrouter": "sk-or-" + "v1-" + made(64, HEX), "posthog": "phx_" + made(43), "clerk": "sk_" + "test_" + made(42), "neon": "napi_" + made(64, LOW),
    "render": "rnd_" + made(28), "github user": "ghu_" + made(36), "github refresh": "ghr_" + made(76), "dropbox": "sl." + "B" + made(135), "hubspot": "pat-na1-" + uu(), "sourcegraph": "sgp_" + made(16, HEX) + "_" + made(40, HEX),
    "nuget": "oy2" + made(43, LOW), "crates": "cio" + made(32), "bedrock": "ABSK" + made(124) + "=",
    "octopus": "API-" + made(26, UP), "mercury": "secret-token:" + "mercury_production_" + made(44), "openai admin": "sk-admin-" + made(60),
    "openai ephemeral": "ek_" + made(48, HEX), "vercel": "vck_" + made(56), "gitlab oidc": "gloas-" + made(64, HEX), "gitlab feed": "glft-" + made(20),
    "grafana old": "eyJrIjoi" + made(80), "microsoft teams": "https://acme.webhook.office.com/webhookb2/" + uu() + "@" + uu() + "/IncomingWebhook/" + made(32, HEX) + "/" + uu(),
    "maxmind": made(6) + "_" + made(29) + "_mmk", "harness": "pat." + made(22) + "." + made(24, HEX) + "." + made(20), "scalingo": "tk-us-" + made(48),
    "zapier hook": "https://hooks.zapier.com/hooks/catch/1234567/" + made(7, LOW), "lob": "live_" + made(35, HEX),
    "gitlab old runner": "GR13" + "48941" + made(20), "gitlab routable": "glpat-" + made(27) + ".01." + made(9, LOW), "slack workflow": "xwfp-" + "749276116187-" + made(30),
    "stripe organization": "sk_org_" + "live_" + made(40), "brevo smtp": "xsmtp" + "sib-" + made(64, HEX) + "-" + made(16), "mailersend": "mlsn." + made(64, HEX),
    "packagist": "packagist_uut_" + made(64, HEX), "hugging face": "hf_" + LETTERS[3:37], "hugging face org": "api_org_" + LETTERS[5:39], "age pq": "AGE-SECRET-" + "KEY-PQ-1" + made(58, UP),
    "razorpay": "rzp_live_" + made(14), "new relic ingest": made(36, HEX) + "NRAL", "datadog app": "ddapp_" + made(34), "datadog pat": "ddpat_" + made(60),
    "honeycomb": "hcaik_01" + made(56, LOW), "honeycomb classic": "hcxik_01" + made(56, LOW), "honeycomb b": "hcbik_01" + made(56, LOW), "logfire": "pylf_v1_us_" + made(43), "axiom": "xaat-" + uu(), "axiom personal": "xapt-" + uu(),
    "pagerduty": "pdus+_0XBPWQQ_" + uu(), "atlas": "mdb_sa_sk_" + made(40), "cloudflare user": "cfut_" + made(48), "cloudflare account": "cfat_" + made(48), "cloudflare global": "cfk_" + made(48),
    "azure checksum": made(52) + "JQQJ99" + made(26), "snyk": "snyk_uat." + made(8, HEX) + "." + made(60), "postman collection": "PMAT-01" + made(24, UP),
    "linkedin": "WPL_AP1." + made(16) + "." + made(8) + "==", "frame.io": "fio-u-" + made(64), "retool": "retool_01" + made(26, LOW), "stytch": "secret-" + "live-" + made(36) + "=",
    "nostr": "nsec1" + made(58, LOW), "bip32": "xprv9s21ZrQH143K" + made(95).replace("0", "1").replace("O", "P").replace("I", "J").replace("l", "m"),
    "device auth": "deviceauth_" + made(32, HEX), "authorization code": "ac_" + made(43) + "." + made(43), "fly macaroon": "fm2_" + "aB3/" + made(160), "paseto": "v4.local." + made(120), "paseto public": "v4.public." + made(120),
    "artifactory reference": "cmVmdGtuOjAxOj" + made(50), "clickup": "pk_43460825_" + made(32, UP), "elevenlabs": "sk_" + made(48, HEX), "novita": "sk_" + made(43), "lm studio": "sk-lm-" + made(8) + ":" + made(20),
    "voyage": "pa-" + made(43), "modal": "ak-" + made(22), "modal secret": "as-" + made(22), "runpod": "rpa_" + made(40, UP) + made(6, LOW),
    "infisical": "st." + uu() + "." + made(32, HEX) + "." + made(32, HEX), "discord mfa": "mfa." + made(84), "statsig": "secret-" + made(43),
    "tencent": "AKID" + made(32), "yandex iam": "t1.9euelZ" + made(60) + "." + made(86), "salesforce": "00D" + made(12) + "!" + made(96),
    "x app": "A" * 22 + made(80), "ntfy": "tk_" + made(29, LOW), "google aq": "AQ.Ab8RN6" + made(42),     "bedrock parted": "ABSK" + "q7/K" + made(124) + "=", "svix parted": "whsec_" + "p7/" + made(29), "sentry parted": "sntrys_eyJ" + "a/b7" + made(100), "grafana parted": "glc_eyJ" + "a/b+7" + made(60), "1password": "ops_eyJ" + "a7/b" + made(200),
    "telegram address": "bot6594889333:" + "AA" + made(33), "square dashes": "EAAA" + "lO7_" + made(55) + "-x", "wandb": "wandb_v1_" + made(77), "zoho": "1000." + made(32, HEX) + "." + made(32, HEX),
}  # fmt: skip
TOK = made(40)
HX = made(32, HEX)
HX40 = made(40, HEX)
U = uu()
TEXTS = {
    "okta header": ("Authorization: SSWS {}", "00" + made(40)), "github token header": ("Authorization: token {}", HX40),
    "gitlab header": ("PRIVATE-TOKEN: {}", made(20)), "vault header": ("X-Vault-Token: {}", "s." + made(24)), "consul header": ("X-Consul-Token: {}", U),
    "datadog": ("DD-API-KEY: {}", HX), "datadog app": ("DD_APP_KEY={}", HX40), "algolia": ("X-Algolia-API-Key: {}", HX),
    "elastic": ("Authorization: ApiKey {}", "VnVhQ2ZHY0JDZGJrU" + made(20) + "=="), "digest": ('Authorization: Digest username="ann", response="{}"', HX),
    "sigv4": ("Authorization: AWS4-HMAC-SHA256 Credential=AKI" + "AIOSFODNN7EXAMPLE/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature={}", made(64, HEX)),
    "apim": ("Ocp-Apim-Subscription-Key: {}", HX), "azure openai": ("api-key: {}", HX), "goog": ("x-goog-api-key: {}", TOK),
    "kubeconfig": ("    client-key-data: {}", "LS0tLS1" + made(80)),
    "docker auth": ('{{"auths":{{"r.io":{{"auth":"{}"}}}}}}', "YW5uOmh1bnRlcjItbG9uZw=="), "openssh": ("-----BEGIN OPENSSH " + "PRIVATE KEY-----\n{}\n-----END OPENSSH PRIVATE KEY-----", made(70)),
    "jwk": ('{{"kty":"EC","crv":"P-256","x":"abc","d":"{}"}}', made(43)), "wireguard": ("[Interface]\nPrivateKey = {}\nAddress = 10.0.0.1", B64),
    "bcrypt": ("root:{}:19000:0:99999", "$2b$12$" + made(53)), "shadow": ("root:{}:19000:0:99999:7:::", "$6$" + made(16) + "$" + made(86)),
    "ansible": ("ansible_become_pass: {}", PW), "tf token": ("TF_TOKEN_app_terraform_io={}", TOK), "conninfo": ('psql "host=h user=ann password={} dbname=x"', PW2),
    "jdbc": ("jdbc:mysql://h/db?user=ann&password={}", PW2), "mongo url": ("mongodb+srv://ann:{}@c0.mongodb.net/db", PW2), "redis url": ("redis://:{}@h:6379/0", PW2),
    "smbclient": ("smbclient //h/s -U ann%{}", PW2), "openssl": ("openssl rsa -in k.pem -passin pass:{}", PW2), "ldapsearch": ("ldapsearch -x -D cn=admin,dc=x -w {} -b dc=x", PW2),
    "docker login": ("docker login -u ann -p {} r.io", PW2), "az login": ("az login --service-principal -u app -p {} --tenant t", PW2),
    "unzip": ("unzip -P {} a.zip", PW2), "7z": ("7z x -p{} a.7z", PW2), "mongosh": ("mongosh h/db -u ann -p {}", PW2), "sqlcmd": ("sqlcmd -S h -U sa -P {} -Q x", PW2),
    "pgpass": ("h.example:5432:db:ann:{}", PW2), "httpie": ("http -a ann:{} https://h/x", PW2), "lftp": ("lftp -u ann,{} ftp://h", PW2),
    "powershell": ('$env:MY_API_KEY = "{}"', TOK), "dockerfile": ("ENV NPM_TOKEN {}", TOK), "yaml": ("api_key: {}", TOK), "toml": ('api_key = "{}"', TOK),
    "cmd set": ("set SERVICE_TOKEN={}", TOK), "fish": ("set -x SERVICE_TOKEN {}", TOK), "xml": ("<password>{}</password>", PW2), "xml value": ('<add key="Password" value="{}"/>', PW2),
    "properties": ("spring.datasource.password={}", PW2), "name value": ('{{"name":"DB_PASSWORD","value":"{}"}}', PW2), "har": ('{{"name":"x-api-key","value":"{}"}}', TOK),
    "python env": ('os.environ["SERVICE_TOKEN"] = "{}"', TOK), "ruby hash": (':password => "{}"', PW2), "curl header": ("curl -H 'X-Api-Key: {}' https://h/", TOK),
    "fragment": ("https://h/cb#access_token={}&token_type=x", TOK), "query": ("GET /x?api_key={} HTTP/1.1", TOK), "flag": ("tool --api-key={} run", TOK),
    "putty": ("PuTTY-User-Key-File-3: ssh-rsa\nPrivate-Lines: 1\n{}\nPrivate-MAC: x", made(64)), "google chat": ("https://chat.googleapis.com/v1/spaces/AAA/messages?token={}", TOK),
    "own scheme": ("Authorization: Api-Key {}", made(8) + "." + made(32)), "hawk": ('Authorization: Hawk id="d", ts="1", nonce="j", mac="{}"', B64), "functions header": ("x-functions-key: {}", TOK + "=="),
    "rapidapi": ("x-rapidapi-key: {}", made(50, LOW)), "jfrog": ("X-JFrog-Art-Api: {}", TOK), "identity token": ('{{"identitytoken":"{}"}}', TOK), "pat": ("AZURE_DEVOPS_EXT_PAT={}", made(52, LOW)),
    "bot token": ('{{"slack_bot_token":"{}"}}', TOK), "upload token": ("codecov_upload_token: {}", U), "rails": ("secret_key_base: {}", made(128, HEX)), "hmac": ('hmacKey="{}"', HX40), "sshpass variable": ("SSHPASS={} sshpass -e ssh h", PW2),
    "authorization code": ('{{"authorization_code":"{}"}}', made(20)), "encrypted pem": ("-----BEGIN RSA " + "PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,0A\n\n{}\n-----END RSA PRIVATE KEY-----", made(60)),
    "nebula": ("-----BEGIN NEBULA X25519 " + "PRIVATE KEY-----\n{}=\n-----END NEBULA X25519 PRIVATE KEY-----", made(43)), "openvpn": ("-----BEGIN OpenVPN " + "Static key V1-----\n{}\n-----END OpenVPN Static key V1-----", HX),
    "helm": ("helm registry login -u ann -p {} ghcr.io", PW2), "gh secret": ("gh secret set NPM_TOKEN --body {}", TOK), "setx": ("setx OPENAI_API_KEY {}", TOK), "chpasswd": ("echo 'ann:{}' | chpasswd", PW2),
    "passwd": ("echo {} | sudo passwd --stdin ann", PW2), "minio": ("mc alias set m https://m admin {}", PW2), "net use": ("net use Z: \\\\srv\\x {} /user:ann", PW2), "snmp": ("snmpwalk -v3 -u ann -A {} h", PW2),
    "oracle": ("jdbc:oracle:thin:scott/{}@//db:1521/X", PW2), "bindpw": ("bindpw {}", PW2), "psk": ('psk="{}"', PW2), "twitch": ("PASS oauth:{}", made(30, LOW)), "php": ("define('DB_PASSWORD', '{}');", PW2),
    "java": ('ds.setPassword("{}");', PW2), "dotnet": ('new NetworkCredential("ann", "{}")', PW2), "plist": ("<key>Password</key><string>{}</string>", PW2), "express": ("connect.sid=s%3A{}", made(32)),
    "php session": ("PHPSESSID={}", made(26, LOW)), "java session": (";jsessionid={}", made(32, UP)), "laravel": ("laravel_session={}", TOK), "apr1": ("ann:{}", "$apr1$" + made(8) + "$" + made(22)),
    "django hash": ("pbkdf2_sha256$870000${}", made(22) + "$" + B64), "scram": ("SCRAM-SHA-256${}", "4096:" + made(22) + "==$" + B64 + ":" + B64), "putty mac": ("Private-MAC: {}", made(64, HEX)),
    "ifttt": ("https://maker.ifttt.com/trigger/x/with/key/{}", made(43)), "make": ("https://hook.eu1.make.com/{}", made(32, LOW)), "feishu": ("https://open.feishu.cn/open-apis/bot/v2/hook/{}", U),
    "wecom": ("https://qyapi.weixin.qq.com/cgi-bin/webhook/send?key={}", U), "migration": ("otpauth-migration://offline?data={}", made(60)), "cloudfront": ("https://d.cloudfront.net/x?Expires=1&Signature={}", "k5t~" + made(300)),
    "form in a query": ("GET /x?note=password%3D{}", PW2), "command in a query": ("GET /x?run=curl%20-u%20ann%3A{}%20https%3A%2F%2Fh", PW2), "hook in a query": ("u=https%3A%2F%2Fhooks.slack.com%2Fservices%2F{}", "T123%2FB456%2F" + made(24)),
    "query in a query": ("u=https%3A%2F%2Fh%2F%3Fv%3Dhttps%253A%252F%252Fann%253A{}%2540h%252F", PW2), "bearer in a query": ("h=Authorization%3A%20Bearer%20{}&z=1", TOK),
    "sudo": ("echo {} | sudo -S ls", PW2), "percent": ("redirect=https%3A%2F%2Fh%2F%3Faccess_token%3D{}", TOK), "netrc default": ("default login ann password {}", PW2),
}  # fmt: skip
HARMLESS = [
    "OPENAI_API_KEY=${OPENAI_API_KEY}", "-----BEGIN RSA " + "PRIVATE KEY----- is the marker of a key", '{"nextPageToken":"CAUQAA1234567890"}', '{"eos_token":"<|endoftext_50256|>"}',
    "pa-rameter", "fc-list", "ak-47", "as-is", "sk_buff_head", "sk_wait_event_interruptible", "pk_field", "rpa_bot.py", "secret-santa-2024", "st.session_state.counter_1", "t1.micro", "mfa.enabled_2",
    "v4.local.conf", "tk_messagebox", "xprv is a prefix", "nsec1 is a prefix", "define('DB_HOST', 'localhost');", "define('WP_DEBUG', true);", "setPassword(newPassword)", 'setPassword("")',
    "<key>CFBundleIdentifier</key><string>com.acme.App1</string>", "psk = preshared", "bindpw is missing", "helm registry login ghcr.io", 'gh pr create --body "Fix 1234567890"', "gh secret list",
    "setx PATH C:\\tools2", "chpasswd: cannot lock", "echo 'hello:w0rld' | cat", "mc alias list", "snmpwalk -v2c -c public h", "net use Z: \\\\server\\share1", "100%25 sure", "50% of keys%3A none", "%s:%s@%s",
    "GET /x?u=https%3A%2F%2Fh%2Fa%3Fb%3D1%26c%3D2", "_session=1", "a_session=open", "oauth:2.0", "mac address", "AKIDX", "0.5", "-----BEGIN OpenVPN tls-crypt-v2 client key-----", "Authorization: Hawk is a scheme",
    "xoxp- is a prefix", "sk.learn import", "access-production-logs", "access_token$schema", "amzn.mws.example.com", "AQVNOTE", "FLWSECK", "EZAKIEL",
    "ico-moon", "nvapi-version", "phx_router", "phc_sha256", "napi_create_function(env)", "rnd_seed = 4", "ghu_x", "sdk-for-python", "sdk-2024-01-01", "sl.BaseModel",
    "pat-na1 region", "sgp_airport", "oy2k", "cio.example.com", "ABSKIPPED", "1/1204567890123456", "API-REFERENCE", "API-GATEWAY-VERSION", "secret-token: see RFC 8959",
    "ek_photo", "vck_x", "gloas-x", "eyJ", "webhook.office.com is a host", "pat.example.com", "tk-us-east", "hooks.zapier.com/hooks", "live_update_interval",
    "Authorization: none needed", "Authorization header is missing", "PRIVATE-TOKEN header", "api-key header required", "the digest is sha256", "Signature required",
    "private_key_id is unused", "client-key-data is missing", '{"auth":"none"}', '{"auth":"chatgpt"}', '{"d":"1,2 L 3,4"}', '{"kty":"EC","crv":"P-256"}', "PrivateKey is a class",
    "root:x:0:0:root:/root2:/bin/bash".replace("/root2", "/"), "docker login -u ann", "docker run -p 8080:80 image", "mkdir -p /tmp/x", "cp -p a b", "unzip -P", "7z x a.7z", "7z x -pass.7z".replace("-pass", "pass"),
    "ldapsearch -w", "smbclient -L h", "grep -w word file", "wc -w x", "http -a", "python -u x.py:main", "rsync -u a:b c", "lftp -u ann", "sqlcmd -S h -P", "mongosh h/db -u ann",
    "openssl rand -hex 16", "-passin stdin", "-passin env:PW", "echo hello | sudo -S ls", "h.example:5432:db", "12:34:56:78:90", "a:b:c:d:e", "2026-01-01T12:34:56:789",
    "$env:PATH = x", "ENV PATH /usr/bin", "ENV TOKENIZERS_PARALLELISM false", "set -x", "set -euo pipefail", "<password/>", "<password></password>", '<input type="password" name="pw">',
    '{"name":"max_tokens","value":"4096"}', '{"name":"content-type","value":"application/json"}', "password_field.clear()", "Password: ********", "password: <redacted>", "password=***",
    "token = tokens[0]", "token = next(tokens)", "const token = await getToken();", "api_key = os.environ['OPENAI_API_KEY']", 'api_key=os.getenv("OPENAI_API_KEY")', "api_key: ${{ secrets.KEY }}", "apiKey: process.env.KEY",
    "secret = Secret.from_name(x)", "self.password = password", "token_type=bearer", "tokenizer.json", "tokens_per_second", "access_token_url", "#access_token", "PuTTY-User-Key-File-3: ssh-rsa",
    "commit 7f3a2b1c9d8e7f6a5b4c3d2e1f0a9b8c7d6e5f4a", "index 83db48f..f735c4d 100644", "integrity sha512-" + "oV9zMk3Q" * 10 + "abcdef==", "ETag: W/\"5e15153d-120f\"",
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk", "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGq0", "call_9aJ3kVq2LTr0ub4dor3z", "resp_0a1b2c3d4e5f60718293a4b5c6d7e8f9",
    "rs_0a1b2c3d4e5f60718293a4b5c6d7e8f9", "msg_0a1b2c3d4e5f60718293a4b5c6d7e8f9", "chatcmpl-9aJ3kVq2LTr0ub4dor3zAbCdEfGhI", "fc_0a1b2c3d4e5f6071", "0x7ffdeadbeef12345", "traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
    "cf-ray: 8a1b2c3d4e5f6071-FRA", "x-request-id: req_0a1b2c3d4e5f60718293a4b5", "sha1-2jmj7l5rSw0yVb/vlWAYkK/YBwk=",
]  # fmt: skip

#: What stays, as `docs/redaction.md` says.
STAYS = {
    "mailgun": made(32, HEX) + "-" + made(8, HEX) + "-" + made(8, HEX), "launchdarkly api": "api-" + uu(), "firecrawl": "fc-" + made(32, HEX),
    "launchdarkly": "sdk-" + uu(), "asana": "1/1204567890123456:" + made(32, HEX), "cursor": "key_" + made(64, HEX),
    "azure devops": made(52, LOW), "mistral": made(32), "hex": made(40, HEX), "uuid": uu(), "azure storage": made(86) + "==",
}  # fmt: skip
