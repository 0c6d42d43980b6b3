"""What is planted of each kind of secret is gone in each placement, and texts that only look like secrets stay.

The secrets are made here, of a prefix and random signs, so that no scanner of this repository meets one.
"""

# ruff: noqa: E501 - a table
from __future__ import annotations

import json
from pathlib import Path
from random import Random

import pytest

from codex_replay.core.cassette.frames import Frame
from codex_replay.core.redact import services
from codex_replay.core.redact.redactor import Redactor
from codex_replay.core.redact.streamed import clean
from codex_replay.shell.cassettes.file import CassetteReader
from tests.core.redact import (
    planted,
    planted_cloud,
    planted_code,
    planted_commands,
    planted_entries,
    planted_issuers,
    planted_places,
    planted_tools,
)
from tests.core.redact.test_streamed import delta, streaming

_RANDOM = Random(16)
_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"


def made(size: int, signs: str = _LETTERS) -> str:
    """Return random signs, with a digit and a letter of each case among the first of them."""
    lead = "".join(next(sign for sign in order if sign in signs) for order in ("7" + signs, "K" + signs, "q" + signs))
    return lead + "".join(_RANDOM.choice(signs) for _ in range(size - 3))


HEX = "0123456789abcdef"
UPPER = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
#: Keys that their own form gives away, whatever stands around them.
KEYS = {
    "openai": "sk-proj-" + made(48), "openai-old": "sk-" + made(48), "openai-service": "sk-svcacct-" + made(40),
    "anthropic": "sk-ant-" + made(40), "openai-refresh": "rt_" + made(40), "openai-session": "sess-" + made(40),
    "openai-organization": "org-" + made(24), "openai-project": "proj_" + made(24), "google-client": "GOC" + "SPX-" + made(28),
    "google-api": "AI" + "za" + made(35), "google-access": "ya" + "29." + made(60),
    "stripe": "sk_" + "live_" + made(24), "stripe-test": "rk_" + "test_" + made(24), "stripe-webhook": "whsec_" + made(32),
    "sendgrid": "SG." + made(22) + "." + made(43), "vault": "hvs." + made(90), "vault-batch": "hvb." + made(90),
    "shopify": "shp" + "at_" + made(32, HEX), "shopify-app": "shp" + "ss_" + made(32, HEX),
    "digitalocean": "dop_" + "v1_" + made(64, HEX), "digitalocean-oauth": "doo_" + "v1_" + made(64, HEX),
    "databricks": "da" + "pi" + made(32, HEX), "docker": "dckr_" + "pat_" + made(27), "docker-org": "dckr_" + "oat_" + made(27),
    "pypi": "pypi-" + "AgEIcHlwaS5vcmc" + made(60), "linear": "lin_" + "api_" + made(40), "xai": "xai-" + made(80),
    "groq": "gsk_" + made(52), "perplexity": "pplx-" + made(48), "age": "AGE-SECRET-" + "KEY-1" + made(58, UPPER),
    "cursor": "crsr_" + made(64, HEX), "elastic": "essu_" + made(80), "azure-devops": made(76) + "AZDO" + made(4), "bedrock-short": "bedrock-api-key-" + made(90),
    "doppler": "dp.pt." + made(43), "doppler-service": "dp.st.prd." + made(43), "atlassian": "ATA" + "TT3" + made(180),
    "bitbucket": "AT" + "BB" + made(32), "telegram": "123456789:AA" + made(33), "discord": "M" + made(23) + ".G" + made(5) + "." + made(38),
    "twilio": "SK" + made(32, HEX), "mailgun": "key-" + made(32, HEX), "mailchimp": made(32, HEX) + "-us12",
    "github": "ghp_" + made(36), "github-oauth": "gho_" + made(36), "github-app": "ghs_" + made(36),
    "github-fine": "github_" + "pat_" + made(40), "gitlab": "glpat-" + made(20), "gitlab-runner": "glrt-" + made(20),
    "gitlab-trigger": "glptt-" + made(40, HEX), "gitlab-deploy": "gldt-" + made(20), "aws": "AK" + "IA" + made(16, UPPER),
    "aws-session": "AS" + "IA" + made(16, UPPER), "aws-bearer": "AB" + "IA" + made(16, UPPER), "slack-bot": "xox" + "b-" + made(40),
    "slack-app": "xapp-" + made(40), "hugging-face": "hf_" + made(34), "npm": "npm_" + made(36), "grafana": "glsa_" + made(32),
    "grafana-cloud": "glc_" + made(60), "new-relic": "NRAK-" + made(27, UPPER), "terraform": made(14) + ".atlasv1." + made(67),
    "heroku": "HRKU-" + made(40), "supabase": "sbp_" + made(40, HEX), "planetscale": "pscale_" + "tkn_" + made(43),
    "postman": "PMAK-" + made(24, HEX) + "-" + made(34, HEX), "rubygems": "rubygems_" + made(48, HEX),
    "sentry": "sntrys_" + made(80), "figma": "figd_" + made(40), "square": "sq0" + "atp-" + made(22), "contentful": "CFPAT-" + made(43),
    "dynatrace": "dt0c01." + made(24, UPPER) + "." + made(64, UPPER), "brevo": "xkey" + "sib-" + made(64, HEX) + "-" + made(16),
    "shippo": "shippo_" + "live_" + made(40, HEX), "tailscale": "tskey-auth-" + made(30), "tavily": "tvly-" + made(32),
    "langsmith": "lsv2_" + "pt_" + made(32, HEX), "pinecone": "pcsk_" + made(60), "circleci": "CCIPAT_" + made(60),
    "buildkite": "bkua_" + made(40, HEX), "netlify": "nfp_" + made(36), "replicate": "r8_" + made(37), "resend": "re_" + made(8) + "_" + made(24),
    "fireworks": "fw_" + made(24), "jina": "jina_" + made(60), "notion": "ntn_" + made(46), "pulumi": "pul-" + made(40, HEX),
    "fly": "fo1_" + made(43), "sonar": "squ_" + made(40, HEX), "alibaba": "LT" + "AI" + made(20), "artifactory": "AK" + "Cp" + made(69),
    "facebook": "EAA" + made(120), "cloudflare": "v1.0-" + made(24, HEX) + "-" + made(146, HEX), "cerebras": "csk-" + made(48),
    "airtable": "pat" + made(14) + "." + made(64, HEX), "adafruit": "aio_" + made(28), "azure-ad": made(3) + "8Q~" + made(34),
    "readme": "rdme_" + made(70, HEX), "clojars": "CLOJARS_" + made(60, HEX), "typeform": "tfp_" + made(44),
    "duffel": "duffel_" + "live_" + made(43), "together": "tgp_" + "v1_" + made(40), "e2b": "e2b_" + made(40, HEX),
}  # fmt: skip
KEYS.update({f"{name}, 2": key for name, key in planted.KEYS.items()})
KEYS.update({f"issuer {name}": key for name, key in planted_issuers.KEYS.items()})
PASSWORD = "hunter" + "2!x"
TOKEN = made(40)
#: Secrets that the text around them gives away.
TEXTS = {
    "curl -u": ("curl -u ann:{} https://h/", PASSWORD), "curl --user": ("curl -s --user ann:{} https://h/", PASSWORD),
    "curl --user=": ("curl --user=ann:{} https://h/", PASSWORD), "curl quoted": ("curl -u 'ann:{}' https://h/", PASSWORD),
    "curl proxy": ("curl --proxy-user ann:{} https://h/", PASSWORD), "curl argv": ('["curl","-u","ann:{}"]', PASSWORD),
    "wget": ("wget --http-password {} https://h/", PASSWORD), "sshpass": ("sshpass -p {} ssh h", PASSWORD),
    "sshpass joined": ("sshpass -p{} ssh h", PASSWORD), "sshpass argv": ('["sshpass","-p","{}","ssh"]', PASSWORD),
    "mysql": ("mysql -u root -p{} db", PASSWORD), "mysqldump": ("mysqldump -h h -p{} db", PASSWORD), "mariadb": ("mariadb -p{} db", PASSWORD),
    "redis": ("redis-cli -h h -a {} ping", PASSWORD), "netrc": ("machine h login ann password {}", PASSWORD),
    "netrc lines": ("machine h\n  login ann\n  password {}\n", PASSWORD), "DB_PASS": ("DB_PASS={} run", PASSWORD),
    "pass=": ("user=ann&pass={}", PASSWORD), "pwd": ('{{"user":"ann","pwd":"{}"}}', PASSWORD), "DB_PWD": ("export DB_PWD={}", PASSWORD),
    "aws configure": ("aws configure set aws_secret_access_key {}", TOKEN), "PGPASSWORD": ("PGPASSWORD={} psql", PASSWORD),
    "pgp": ("-----BEGIN PGP " + "PRIVATE KEY BLOCK-----\nVersion: GnuPG v2.0 (Linux)\n\n{}\n-----END PGP PRIVATE KEY BLOCK-----", TOKEN),
    "azure account": ("DefaultEndpointsProtocol=https;AccountName=a;AccountKey={}==;EndpointSuffix=x", TOKEN),
    "azure bus": ("SharedAccessKeyName=root;SharedAccessKey={}=", TOKEN), "azure sas": ("https://a/b?sv=2020&sig={}%3D", TOKEN),
    "slack webhook": ("https://hooks.slack.com/services/{}", "T0" + made(8, UPPER) + "/B0" + made(8, UPPER) + "/" + made(24)),
    "discord webhook": ("https://discord.com/api/webhooks/{}", "123456789012345678/" + made(60)),
    "multipart": ('Content-Disposition: form-data; name="password"\r\n\r\n{}\r\n--x', PASSWORD),
    "google refresh": ("refresh 1/" + "/0{}", made(50)), "callback": ("http://localhost:1455/auth/callback?code={}&state=x", TOKEN), "user_code": ('{{"user_code":"{}"}}', "ABCD-EFGH7"),
    "user_code form": ("user_code={}&x=1", "WXYZ-1234"), "url": ("postgres://ann:{}@db/x", PASSWORD), "bearer": ("Bearer {}", TOKEN),
    "basic": ("Authorization: Basic {}", "YW5uOmh1bnRlcjI="), "password": ('{{"password":"{}"}}', PASSWORD),
    "aws signature": ("https://b/x?X-Amz-Signature={}", made(64, HEX)), "secret": ("CLIENT_SECRET={}", PASSWORD),
    "npmrc": ("//r/:_authToken={}", TOKEN), "cookie": ("Cookie: sid={}", TOKEN), "refresh": ('{{"refresh_token":"{}"}}', TOKEN),
}  # fmt: skip
TEXTS.update({**planted.TEXTS, **{f"command {name}": text for name, text in planted_commands.TEXTS.items()}})
TEXTS.update({f"tool {name}": text for name, text in planted_tools.TEXTS.items()})
TEXTS.update({f"cloud {name}": text for name, text in planted_cloud.TEXTS.items()})
TEXTS.update({f"code {name}": text for name, text in planted_code.TEXTS.items()})
TEXTS.update({f"entry {name}": text for name, text in planted_entries.TEXTS.items()})
TEXTS.update({f"issuer {name}": text for name, text in planted_issuers.TEXTS.items()})
TEXTS.update({f"place {name}": text for name, text in planted_places.TEXTS.items()})
PLANTED = {**{f"key {name}": ("{}", key) for name, key in KEYS.items()}, **TEXTS}


def placements(text: str) -> dict[str, bytes]:
    """Return the text as it may stand in a recording."""
    item = {"method": "item/completed", "params": {"item": {"text": f"before {text} after"}}}
    nested = json.dumps({"arguments": json.dumps({"command": text})})
    return {
        "alone": text.encode(),
        "a message": json.dumps(item).encode(),
        "nested": json.dumps({"data": nested}).encode(),
        "escaped": json.dumps({"text": f"\n{text}\n\u20ac"}).encode(),
        "stderr": f"2026-01-01T00:00:00Z ERROR \x1b[31m{text}\x1b[0m\n".encode(),
        "an event": b'event: x\ndata: {"type":"x","text":' + json.dumps(text).encode() + b"}\n\n",
        "a test": json.dumps({"id": f"tests/test_x.py::test_y[{text}]", "outcome": "passed"}).encode(),
        "an argument": json.dumps({"argv": ["bash", "-lc", text]}).encode(),
        "a header": json.dumps({"headers": [["x-note", text]]}).encode(),
        "a key of JSON": json.dumps({"text": {text: 1}}).encode(),
    }


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_secret_is_gone_in_each_placement(name: str) -> None:
    form, secret = PLANTED[name]
    for where, data in placements(form.format(secret)).items():
        clean = Redactor().redact(data)
        assert secret.encode() not in clean, (where, clean)
        assert Redactor().redact(clean) == clean, where
        if data[:1] == b"{":
            json.loads(clean)


@pytest.mark.parametrize("name", [name for name, key in KEYS.items() if key.startswith("sk-")])
@pytest.mark.parametrize("before", ["test_login[", "test_login_", "x-", "asdf", "A9", "["])
def test_a_key_is_found_directly_after_other_signs(name: str, before: str) -> None:
    """A test's id in a report and the name of a header."""
    assert KEYS[name].encode() not in Redactor().redact(f"{before}{KEYS[name]}] passed".encode())


def test_a_header_a_variable_and_an_argument_lose_theirs() -> None:
    redactor = Redactor()
    for name, key in KEYS.items():
        assert key not in redactor.headers([("x-note", key)])[0][1], name
        assert key not in redactor.environ({"NOTE": key})["NOTE"], name
        assert key not in redactor.argv(["run", key])[1], name


def test_there_are_enough_kinds_and_every_service_has_one() -> None:
    assert len(PLANTED) >= 300
    unseen = set(range(len(services.SERVICES)))
    for key in KEYS.values():
        data = key.encode()
        unseen -= {i for i in unseen if any(services.SERVICES[i].find(data, data.lower()))}
    #: Of rows made for each digit or letter one planted key meets one row.
    made_in_rows = {"sk", "hv", "sq", "gl", ".g", ".x", ".y", "gh"}
    left = {services.SERVICES[i].trigger for i in unseen}
    assert {word for word in left if word[:2] not in made_in_rows and word[-2:] != "q~"} <= SELDOM, left


#: Forms without a planted key: variants of a service that has one.
SELDOM = {
    "atctt3", "nrjs-", "sb_secret_", "secret_", "apa91b", "a3t", "acca",
    "bb_test_", "pdl_sdbx_apikey_", "ops_eyj", "a3-", "eztk", "vca_", "vci_", "vcp_", "vcr_", "y0_", "sat.", "test_", "glffct-", "glwt-", "glsoat-", "glagent-", "glimt-", "glcbt-",
}  # fmt: skip

HARMLESS = [
    "password = input('Password: ')", 'password = input("Password: ")', "getpass.getpass('Password: ')", "pass", "pass=3 fail=0",
    "PASS=12", "12 passed, 1 failed", "pass: 12 tests", '{"pass":true}', '{"pwd":"/tmp/x"}', "PWD=/tmp/work", "pwd=/srv/app ls",
    "OLDPWD=/tmp", "bypass=through", "compass=north", "passthrough=yes", "docker run -u 1000:1000 image", "docker run --user app:app x",
    "curl -u $USER:$PASS https://h/", "curl -sSL https://h/", "curl --url https://h/x", "mysql -p", "mysql -P 3306 -h h",
    "ssh -p 22 host", "sshpass -p $PASSWORD ssh h", "machine learning login page", "login with a password of your own",
    "aws configure set region eu-west-1", "npm i foo@1.2.3.tgz", "icon@2x.png", "image@3x.jpg", "pkg@v1.2.3.zip", "@types/node@20.1.0",
    "task-force-one-and-two", "disk-usage-2024-report", "risk-assessment-2024", "task-01997a6e1f2b7c3d9e4f5a6b", "sk-learn-contrib",
    "org-mode is an editor", "org-chart", "sess-ions", "rt_sigaction(SIGINT)", "rt_priority=5", "start_time", "report_2024_final",
    "proj_name", "re_compile_pattern", "hf_hub_download", "gsk_model", "fw_version_1", "key-value store", "key-0123", "SKU-12345",
    "patch.diff", "pattern.compile", "https://h/x?code=200", "https://h/?code=ok&x=1", "exit_code=1", "status code=404", "errcode=12345",
    "sig=SIGTERM", "signature=None", "?sig=short", "device code flow", "user_code_path", "the user code is shown", "form-data; name=file",
    "11a7f3c2e4b5968778695a4b3c2d1e0f", "550e8400-e29b-41d4-a716-446655440000", "sha256:" + "ab12" * 16, "0.92.0-alpha.1",
    "rollout-2026-11-22T22-14-04-01a20552-d545-7f08-ac55-5d1885540268.jsonl", "v1.0-rc1", "v1.0-beta", "hvs.example", "SG.x", "dp.x",
    "discord.gg/invite", "hooks.slack.com is a host", "lin_reg(x)", "dapibus et magnis", "AGE-OF-EMPIRES", "xai is a company",
    "tfp_model", "sq_euclidean", "glob-pattern-matching-2", "secret_sauce", "ATA disk", "EAAS", "LTAI", "MNO.xyz.abc", "12:AA:BB:CC",
    '{"type":"string","format":"password"}', "a password is asked for", "--password-stdin", "docker login --password-stdin",
    "token_count: 5", '{"max_output_tokens":128}', "TOKENS=5", "tokens: 120", "KEYBOARD=us", "monkey=george", "keyword=else",
    "author=ann", "authority=h", "cookiecutter", "accountant", "x" * 80, "A" * 80, "0" * 80, "-" * 80, "def f(password: str) -> None:",
    "if (password === undefined)", "password: string;", "password?: string", "const pass = 1", "for pass in range(3)", "wget https://h/",
    "redis-cli ping", "mysqldump --version", "mariadb --help", "git@github.com:o/r.git", "user@1000.service", "AccountKey=",
    "SharedAccessKeyName=root", "BEGIN PUBLIC KEY", "-----BEGIN PGP PUBLIC KEY BLOCK-----", "Bearer of news", "basic auth",
    "the key is under the mat", "pnu_x", "e2b_sandbox", "pul-request", "fo1_x", "r8_x", "ntn_x", "aio_run", "jina_ai", "csk-x",
    "whsec_", "tskey-", "sbp_x", "figd_x", "glsa_x", "shpat_x", "dckr_pat_x", "npm_config_registry", "npm_lifecycle_event",
    "ghp_", "xoxb-", "AKIA", "AIza", "hf_transfer", "sk_live", "test_key_is_found[sk-]", "desk-lamp-1234567890", "mask-rcnn-resnet50",
    "whisk-broom-and-a-long-name-of-a-branch", "1//0 is a division", "x-request-id: 12", "DB_PASS=", "DB_PASS=$DB_PASS", "pass=word",
]  # fmt: skip


HARMLESS += planted.HARMLESS + planted_commands.HARMLESS + planted_tools.HARMLESS + planted_cloud.HARMLESS + planted_code.HARMLESS
HARMLESS += planted_entries.HARMLESS + planted_places.HARMLESS + planted_issuers.HARMLESS


def test_there_are_enough_harmless_texts() -> None:
    assert len(set(HARMLESS)) >= 270


@pytest.mark.parametrize("text", HARMLESS)
def test_a_harmless_text_stays(text: str) -> None:
    for where, data in placements(text).items():
        assert Redactor().redact(data) is data, where


def _delta(frame: Frame) -> str:
    value = frame.payload["data"] if frame.seam == "http" else frame.value["params"]
    return str(value.get("msg", value)["delta"])


@pytest.mark.parametrize("form", ["v2", "v1", "text", "arguments"])
def test_a_key_that_is_split_over_frames_is_gone(form: str, tmp_path: Path) -> None:
    """On both seams, in three parts, each kind of key in an item of its own."""
    frames = []
    for name, key in KEYS.items():
        third = len(key) // 3
        pieces = ("It is ", key[:third], key[third : 2 * third], key[2 * third :], " indeed")
        frames += [delta(form, piece, number, name) for number, piece in enumerate(pieces)]
    path = streaming(tmp_path / "live.ndjson", *frames)
    with CassetteReader(path) as reader:
        texts = [_delta(frame) for frame in clean(list(reader), Redactor())[2:]]
    said = "".join(texts)
    assert len(texts) == 5 * len(KEYS)
    assert said.count(" indeed") == len(KEYS)
    for name, key in KEYS.items():
        assert key not in said, name


@pytest.mark.parametrize("name", planted.STAYS)
def test_what_the_page_says_is_not_recognised_stays(name: str) -> None:
    key = planted.STAYS[name]
    assert Redactor().redact(f"before {key} after".encode()) == f"before {key} after".encode()
    assert Redactor().redact(json.dumps({"api_key": key}).encode()) != json.dumps({"api_key": key}).encode()
    assert key not in Redactor(literals={key: "mine"}).text(f"before {key} after")
