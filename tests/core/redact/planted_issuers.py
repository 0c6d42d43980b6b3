"""Keys of more services, hashes of network devices, and keys in addresses, for `test_redact_kinds`, and texts that look like them."""

# ruff: noqa: E501 - tables
from __future__ import annotations

from tests.core.redact.planted import HEX, LOW, PW2, UP, made, uu

_HEX = {size: made(size, HEX).lower() for size in (26, 32, 34, 40, 64, 128)}
_CRYPT = made(43, "./abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789")
KEYS = {
    "refresh token with a sign": "rt_" + "-" + made(42) + "." + made(43), "anyscale": "esecret" + "_" + made(28, LOW), "runpod": "rpa_" + made(46, UP),
    "jina with a sign": "jina_" + made(20) + "_" + made(20) + "-" + made(18), "browserbase": "bb_" + "live_" + made(13) + "-" + made(13), "daytona": "dtn_" + _HEX[64],
    "mem0": "m0-" + made(40), "lambda": "secret_" + "team-2_" + _HEX[32] + "." + made(32), "bedrock name": "ABSK" + "QmVkcm9ja0FQSUtleS1" + made(70) + "==",
    "context7": "ctx7sk-" + uu(), "llamacloud": "llx-" + made(48), "openpipe": "opk_" + made(42), "databricks client": "dose" + _HEX[32],
    "databricks entra": "dkea" + _HEX[32] + "-2", "dbt": "dbtu_" + made(40), "dbt service": "dbtc_" + made(40), "circleci project": "CCIPRJ" + "_" + made(22) + "_" + _HEX[40],
    "youtrack": "perm-" + "YW5u.NDctMg==." + made(30), "openshift": "sha256~" + made(43), "sentry url": "sntrys_" + "eyJ" + made(60) + "-" + made(20) + "_" + made(43),
    "newrelic": _HEX[32] + "FFFF" + "NRAL", "newrelic eu": "eu01xx" + _HEX[26] + "FFFF" + "NRAL", "paddle": "pdl_live_" + "apikey_" + made(26, LOW) + "_" + made(22) + "_" + made(3),
    "paddle hook": "pdl_" + "ntfset_" + made(26, LOW) + "_" + made(32), "mandrill": "md-" + made(22), "intercom": "dG9r" + "Oj" + made(53) + "=", "klaviyo": "pk_" + _HEX[34],
    "figma user": "figu_" + made(40), "segment": "sgp_" + made(64), "instagram": "IGQV" + "J" + made(120), "pinterest": "pina_" + made(60, UP),
}  # fmt: skip
TEXTS: dict[str, tuple[str, str]] = {
    "copilot": ("token tid={};sku=free", _HEX[32] + ";exp=1767225600"), "vault login": ("vault login s.{}", made(24)), "vault login list": ('["vault","login","s.{}"]', made(24)), "vault login method": ("vault login -no-print s.{}", made(24)),
    "honeycomb": ("x-honeycomb-team: {}", made(22)), "honeycomb pair": ('{{"headers":[["x-honeycomb-team","{}"]]}}', made(22)), "alchemy": ("https://eth-mainnet.g.alchemy.com/v2/{}", made(32)), "infura": ("wss://mainnet.infura.io/ws/v3/{}", _HEX[32]),
    "quicknode": ("https://a-b.quiknode.pro/{}/", _HEX[40]), "werkzeug": ("scrypt:32768:8:1${}", made(16) + "$" + _HEX[128]), "werkzeug pbkdf2": ("pbkdf2:sha256:600000${}", made(16) + "$" + _HEX[64]),
    "phpass": ("$P${}", "B" + made(30)), "drupal": ("$S${}", "D" + made(51)), "kerberos": ("$krb5tgs$23$*svc$CORP$http/h*${}", _HEX[32] + "$" + _HEX[128] * 8), "cisco 9": ("enable secret 9 $9${}", made(14) + "$" + _CRYPT),
    "cisco 8": ("username ann secret 8 $8${}", made(14) + "$" + _CRYPT), "juniper": ('encrypted-password "$9${}";', made(30)), "fortinet": ("set password ENC {}", made(67) + "="), "ipsec xauth": ('ann : XAUTH "{}"', PW2), "ipsec eap": ('ann : EAP "{}"', PW2),
    "ceph": ("[client.admin]\n\tkey = AQ{}", made(36) + "=="), "filezilla": ('<Pass encoding="base64">{}</Pass>', made(18) + "=="), "filezilla plain": ("<Pass>{}</Pass>", PW2), "hibernate": ('<property name="hibernate.connection.password">{}</property>', PW2),
    "property by key": ("<entry key='smtp.password'>{}</entry>", PW2), "actions": ('echo "::add-mask::{}"', made(24)), "password for": ("The password for the box is {}, change it.", PW2 + "7x"),
    "openssl rsa": ("openssl rsa -in k.pem -passin pass:{}", PW2),
}  # fmt: skip
HARMLESS = [
    "getSourceSecret_(source2)", "rt__scheduler_2_init_thread", "jina_embeddings_v2_base_en_finetuned_on_my_corpus", "bb_live_transfer_2_of_a_block", "dtn_router_1", "m0-lite", "secret_store_2.client", "llx-test-2", "opk_2", "dose of 200mg", "dosed8 twice a day",
    "dbtc_test_token_2", "perm-check.a2.b", "permission-denied-2026-01-02.log.txt", "sha256~", "pdl_live_apikey_test", "md-toolbar_row-2x3_grid_abcde", "md-button-2", "pk_index_2", "figu_1", "sgp_filter_2", "pina_colada_2",
    "tid=0123;exp=2", "vault login -method=oidc role=dev2", "vault login s.example", "x-honeycomb-dataset: prod2", "https://eth-mainnet.g.alchemy.com/v2/<key>", "https://mainnet.infura.io/v3/YOUR-PROJECT-ID", "cost: $9 or $8 a month", "$P$", "$S$", "krb5tgs",
    "enable secret 9 <hash>", 'encrypted-password "<hash>";', "set password ENC <value>", "the EAP method 2", "key = AQ", "<pass>12</pass>", "<Pass>none</Pass>", '<property name="hibernate.show_sql">true2</property>', '<property name="password">${db.password}</property>',
    'echo "::add-mask::$TOKEN2"', "echo '::add-mask::${{ secrets.X1 }}'", "The password for the box is in the vault, item 12.", "the password for ann is not set",
    "/srv/www@blue.conf", "getty@tty1.service", "/etc/wireguard/wg0@home.conf", "notes@2026.txt", "app@latest.yml", "pkg@next.toml",
]  # fmt: skip
