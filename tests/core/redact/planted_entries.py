"""Secrets of entries with the value first, arrows, YAML, SNMP, SAML and keys with prefixes, for `test_redact_kinds`, and texts that look like them."""

# ruff: noqa: E501 - tables
from __future__ import annotations

import base64

from tests.core.redact.planted import B64, HEX, PW2, made

TOK, SHA, SHORT = made(40), made(40, HEX), "k9Rack" + made(6, HEX)
SAML = base64.b64encode(b'<samlp:Response ID="_1"><saml:Assertion>' + made(300).encode()).decode()
PEM = "-----{} RSA " + "PRIVATE KEY-----"


def key(lines: str) -> str:
    """Return a private key whose lines stand in a form; the secret is the second line of three."""
    middle = (lines.format(line).replace("{", "{{").replace("}", "}}") for line in (made(64), "SECRET", made(12) + "=="))
    body = "\n".join(middle).replace("SECRET", "{}")
    return "\n".join([lines.format(PEM.format("BEGIN")), body, lines.format(PEM.format("END"))])


TEXTS: dict[str, tuple[str, str]] = {
    "json": ('{{"value":"{}","name":"API_KEY"}}', TOK), "json, key": ('{{"value": "{}", "key": "DB_PASSWORD"}}', PW2), "json, between": ('{{"value":"{}","type":"secret","key":"apiKey"}}', SHA),
    "json, list": ('[{{"value":"{}","name":"GITHUB_TOKEN"}},{{"value":"info","name":"LOG_LEVEL"}}]', TOK), "json, lines": ('{{\n  "value": "{}",\n  "name": "STRIPE_SECRET"\n}}', TOK),
    "aws parameter": ('{{"Value":"{}","Type":"SecureString","Name":"/prod/db/password"}}', PW2), "postman": ('{{"value":"Bearer {}","key":"Authorization"}}', TOK),
    "cloudformation": ('{{"ParameterValue":"{}","ParameterKey":"MasterUserPassword"}}', PW2), "yaml": ("- value: {}\n  name: SLACK_TOKEN\n", TOK), "xml": ('<add value="{}" key="SmtpPassword" />', PW2),
    "javascript": ("x = {{value: '{}', name: 'JWT_SECRET'}}", TOK), "name first": ('{{"name":"API_KEY","enabled":true,"value":"{}"}}', TOK),
    "arrow": ("password -> {}", PW2), "arrow, long": ("password --> {}", PW2), "arrow, sign": ("token → {}", SHA), "arrow, words": ("API key -> {}", TOK), "arrow, german": ("Passwort → {}", PW2),
    "prose, with": ("log in with password {} to go on", "Pepper" + "@332Rm"), "prose, pw": ("pw: {}", PW2),
    "anchor": ("password: &dbpw {}\nagain: *dbpw\n", PW2), "anchor, quoted": ('api_key: &default "{}"\n', TOK), "anchor, token": ("token: &t '{}'", SHA), "unsafe": ("secret: !unsafe '{}'", PW2),
    "community": ("snmp-server community {} RO", SHORT), "community -c": ("snmpwalk -v2c -c {} 10.0.0.1 system", SHORT), "rocommunity": ("rocommunity {} 10.0.0.0/8", SHORT), "com2sec": ("com2sec readonly default {}", SHORT),
    "community field": ("snmp_community: {}", SHORT), "community member": ('{{"communityString":"{}"}}', SHORT), "juniper": ("set snmp community {} authorization read-only", SHORT),
    "saml form": ("SAMLResponse={}&RelayState=x", SAML.replace("=", "%3D")), "saml member": ('{{"SAMLResponse":"{}"}}', SAML), "saml input": ('<input type="hidden" name="SAMLResponse" value="{}"/>', SAML),
    "saml signature": ("<saml:Assertion><ds:SignatureValue>{}</ds:SignatureValue></saml:Assertion>", B64 * 4), "saml encrypted": ("<saml:EncryptedAssertion><xenc:CipherValue>\n{}\n</xenc:CipherValue></saml:EncryptedAssertion>", B64 * 4),
    "key, cat": (key("     1\t{}"), TOK), "key, diff": (key("+{}"), TOK), "key, quote": (key("> > {}"), TOK), "key, compose": (key("web_1  | {}"), TOK), "key, strings": (key('    "{}\\n"'), TOK), "key, list": (key('"{}",'), TOK), "key, plus": (key("'{}\\n' +"), TOK),
    "gradle": ('storePassword "{}"', PW2), "ipsec": ('h.example %any : PSK "{}"', PW2), "cisco": ("username ann password 7 {}", made(20, HEX).upper()), "kickstart": ("rootpw --plaintext {}", PW2),
    "unattend": ("<AdministratorPassword>\n  <Value>{}</Value>", PW2), "interfaces": ("wpa-psk {}", PW2), "redis prompt": ("127.0.0.1:6379> AUTH {}", PW2), "echo to file": ("echo '{}' > /run/secrets/db_password", PW2),
    "expect": ('expect "assword:"; send "{}\\r"', PW2), "influx list": ('["influx","-username","ann","-password","{}"]', PW2),
}  # fmt: skip
_CERTIFICATE = ("-----BEGIN CERTIFICATE-----", made(64), made(64), "-----END CERTIFICATE-----")
HARMLESS = [
    '{"value":"string","name":"token_type"}', '{"value":"required","name":"password"}', '{"value":"required|min:8","name":"password"}', '{"value":"${DB_PASSWORD1}","name":"DB_PASSWORD"}', '{"value":"hunter2hunter2","name":"color"}',
    '[{"value":"abcdef123456"},{"name":"API_KEY"}]', '{"value":"5f2c1d7e9a","key":"etag"}', "- value: 8080abcdef\n  name: PORT\n", "- value: abcdef12\n- name: API_KEY\n", '{"value":4711471147,"name":"API_KEY"}',
    "password -> hash", "password -> bcrypt(password1)", "password -> Argon2id", "token -> TokenKind2", "token -> user_id2", "(token) => verifyToken2(token)", "token -> parse_token_for_oauth2_flow", "fn token(&self) -> Token2", "API key -> Settings -> Create new",
    "the password Argon2id is hashed with", "password **kwargs2 is", "pw: int = 0", "pw: Window2", "secret: &secretname my-app-secret", "token: &anchor", "password: *dbpw2", "let p = &password1;", "if (&token2 == NULL)", "secret: !Ref DbSecret1",
    "snmp-server location Rack42", "snmpget -v 2c -c public localhost sysDescr.0", "snmpwalk -v2c -c $COMMUNITY1 host1", "rocommunity is a directive", "show snmp community Detail2", "community: Community Edition 2024", "community standards 1.1",
    '<md:EntityDescriptor entityID="https://idp.example/saml2/metadata">', "SAMLResponse is posted to /saml2/acs", "SAMLResponse=...", 'xmlns:saml="urn:oasis:names:tc:SAML:2.0:assertion"', "<ds:SignatureValue>" + B64 * 4 + "</ds:SignatureValue>",
    "\n".join(_CERTIFICATE), "\n".join("+" + line for line in _CERTIFICATE), "grep -rn '" + PEM.format("BEGIN") + "' .", 'if line == "' + PEM.format("BEGIN") + '": found = "aVeryLongIdentifierOfMoreThan32Letters"',
    "'password' => 'required|string|min:8',", "kubectl create secret generic db --from-file=password=./pw1.txt", "key_mgmt=WPA-PSK WPA-PSK-SHA256", "wpa-psk is set", "rootpw --lock", "AUTH LOGIN2 failed", "echo step2 > token.txt", "storePassword storeSecret2",
]  # fmt: skip
