"""A table of the API keys of well-known services, each with its published prefix and length, and finders for these keys.

Each row has the pattern of one kind of key, and its trigger: lower-case letters of the key that are searched for first, in
words of at least `triggers.LONG` characters. The prefixes of the keys come from the documentation of the services. The
lists of gitleaks (MIT) and detect-secrets (Apache-2.0) were used to find missing services; none of their code is copied.
The patterns contain no look-behind `(?<!x)`, because an escape (`\\n`) may stand directly before a key.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache, partial

from codex_replay.core.redact.placeholders import is_placeholder
from codex_replay.core.redact.rules import KEY_FORMS
from codex_replay.core.redact.text import Finder, Span, late, word_start
from codex_replay.core.redact.triggers import LONG

_ALNUM = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
_DIGIT = late(rb"[0-9]")
_UUID = "[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}"
_RUN = late(r"\[([^]]*)\]\{")  # the signs of a key after its prefix
_FILLER = 10  # equal signs at the end of an example: `ghp_xxxxxxxxxx`
_GITLAB = ("ptt", "dt", "rt", "cbt", "soat", "ft", "agent", "imt", "oas", "ffct", "wt")

#: Forms that are too distinct to be anything else, wherever they are: directly after a letter, a digit, `-` or `_` too.
DISTINCT: tuple[tuple[str, str], ...] = (
    ("gocspx-", "GOCSPX-[A-Za-z0-9_-]{20,}+"),  # Google OAuth client
    ("whsec_", "whsec_[A-Za-z0-9+/=]{20,}+"),  # Stripe webhook
    ("shp", "shp(?:at|ca|pa|ss|ua|tka)_[a-fA-F0-9]{20,}+"),  # Shopify
    ("_v1_", "(?:do[opr]|tgp|pnu)_v1_[A-Za-z0-9_-]{20,}+"),  # DigitalOcean, Together
    ("dapi", "dapi[a-f0-9]{32}(?:-[0-9])?"),  # Databricks
    ("dckr_", "dckr_[po]at_[A-Za-z0-9_-]{20,}+"),  # Docker
    ("pypi-age", "pypi-AgE[A-Za-z0-9_-]{20,}+"),  # PyPI
    ("lin_", "lin_(?:api|oauth)_[A-Za-z0-9]{20,}+"),  # Linear
    ("pplx-", "pplx-[A-Za-z0-9]{20,}+"),  # Perplexity
    ("age-secret-key-1", "AGE-SECRET-KEY-1[0-9A-Z]{20,}+"),  # age
    ("dp.", r"dp\.(?:pt|st|ct|sa|scim|audit)\.(?:[a-z0-9_-]{2,35}\.)?[A-Za-z0-9]{20,}+"),  # Doppler
    ("atatt3", "ATATT3[A-Za-z0-9_=-]{20,}+"),  # Atlassian
    ("atctt3", "ATCTT3[A-Za-z0-9_=-]{20,}+"),
    *((f"gl{kind}-", f"gl{kind}-[A-Za-z0-9_-]{{18,}}+") for kind in _GITLAB),
    ("glsa_", "glsa_[A-Za-z0-9]{20,}+(?:_[A-Fa-f0-9]{8})?"),  # Grafana
    ("glc_", "glc_[A-Za-z0-9+/]{20,}+=*"),
    ("nrak-", "NRAK-[A-Za-z0-9]{20,}+"),  # New Relic
    ("nrjs-", "NRJS-[A-Za-z0-9]{16,}+"),
    (".atlasv1.", r"[A-Za-z0-9]{10,20}\.atlasv1\.[A-Za-z0-9_=-]{30,}+"),  # Terraform Cloud
    ("hrku-", "HRKU-[A-Za-z0-9_-]{20,}+"),  # Heroku
    ("sbp_", "sbp_[a-f0-9]{30,}+"),  # Supabase
    ("sb_secret_", "sb_secret_[A-Za-z0-9_-]{20,}+"),
    ("pscale_", "pscale_(?:tkn|pw|oauth)_[A-Za-z0-9_.=-]{20,}+"),  # PlanetScale
    ("pmak-", "PMAK-[A-Za-z0-9-]{20,}+"),  # Postman
    ("rubygems_", "rubygems_[a-f0-9]{30,}+"),
    ("sntry", "sntry[su]_[A-Za-z0-9+/=_-]{20,}+"),  # Sentry
    *((f"fig{kind}_", f"fig{kind}_[A-Za-z0-9_-]{{20,}}+") for kind in "du"),  # Figma
    ("sq0", "sq0(?:atp|csp|idp)-[A-Za-z0-9_-]{20,}+"),  # Square
    ("cfpat-", "CFPAT-[A-Za-z0-9_-]{20,}+"),  # Contentful
    ("dt0c01.", r"dt0[a-z]01\.[A-Za-z0-9]{20,}+(?:\.[A-Za-z0-9]{20,}+)?"),  # Dynatrace
    ("xkeysib-", "xkeysib-[a-f0-9]{30,}+(?:-[A-Za-z0-9]{8,}+)?"),  # Brevo
    ("shippo_", "shippo_(?:live|test)_[a-f0-9]{20,}+"),
    ("rdme_", "rdme_[a-z0-9]{30,}+"),  # ReadMe
    ("tskey-", "tskey-[a-z]{2,12}-[A-Za-z0-9-]{16,}+"),  # Tailscale
    ("tvly-", "tvly-[A-Za-z0-9-]{20,}+"),  # Tavily
    ("lsv2_", "lsv2_(?:pt|sk)_[A-Za-z0-9_]{20,}+"),  # LangSmith
    ("pcsk_", "pcsk_[A-Za-z0-9_]{20,}+"),  # Pinecone
    *((f"cci{kind}_", f"CCI{kind.upper()}_[A-Za-z0-9_]{{20,}}+") for kind in ("pat", "prj")),  # CircleCI
    ("bkua_", "bkua_[a-z0-9]{20,}+"),  # Buildkite
    ("clojars_", "CLOJARS_[a-z0-9]{40,}+"),
    ("nfp_", "nfp_[A-Za-z0-9]{30,}+"),  # Netlify
    ("duffel_", "duffel_(?:test|live)_[A-Za-z0-9_=-]{20,}+"),
    ("apa91b", "[A-Za-z0-9_-]{6,22}:APA91b[A-Za-z0-9_-]{40,}+"),  # Firebase
    ("xoxd-", "xoxd-[A-Za-z0-9%/+=_-]{16,}+"),  # Slack: the cookie of a browser
    ("access-", f"access-(?:sandbox|development|production)-{_UUID}"),  # Plaid
    ("amzn.mws.", rf"amzn\.mws\.{_UUID}"),  # Amazon MWS
    ("pat-", f"pat-(?:na|eu|ap)[0-9]-{_UUID}"),  # HubSpot
    ("flwseck", "FLWSECK(?:_TEST)?-[a-z0-9]{12,}+(?:-X)?"),  # Flutterwave
    ("nvapi-", "nvapi-[A-Za-z0-9_-]{40,}+"),  # NVIDIA
    ("wandb_v1_", "wandb_v1_[A-Za-z0-9_-]{40,}+"),  # Weights & Biases
    ("_mmk", "[A-Za-z0-9]{6}_[A-Za-z0-9]{29}_mmk"),  # MaxMind
    ("sk-lm-", "sk-lm-[A-Za-z0-9]{8}:[A-Za-z0-9]{20,}+"),  # LM Studio
    ("gr1348941", "GR1348941[A-Za-z0-9_-]{20}"),  # GitLab: the old token of a runner
    ("xwfp-", "xwfp-[0-9A-Za-z-]{20,}+"),  # Slack workflow
    ("sk_org_", "sk_org_(?:live|test)_[A-Za-z0-9]{20,}+"),  # Stripe organization
    ("xsmtpsib-", "xsmtpsib-[a-f0-9]{30,}+(?:-[A-Za-z0-9]{8,}+)?"),  # Brevo
    ("mlsn.", r"mlsn\.[a-f0-9]{60,}+"),  # MailerSend
    ("packagist_", "packagist_[a-z]{2,4}_[a-f0-9]{40,}+"),
    ("api_org_", "api_org_[A-Za-z0-9]{30,}+"),  # Hugging Face organization
    ("age-secret-key-pq-1", "AGE-SECRET-KEY-PQ-1[0-9A-Z]{20,}+"),
    ("rzp_", "rzp_(?:live|test)_[A-Za-z0-9]{14,}+"),  # Razorpay
    ("nral", "(?:[0-9a-f]{36}|(?:eu01xx|[0-9a-f]{6})[0-9a-f]{26}FFFF)NRAL(?![A-Za-z0-9])"),  # New Relic
    ("ddapp_", "ddapp_[A-Za-z0-9]{30,}+"),  # Datadog
    ("ddpat_", "ddpat_[A-Za-z0-9_]{30,}+"),
    *((f"hc{kind}ik_", f"hc{kind}ik_[0-9a-z]{{58}}") for kind in "abx"),  # Honeycomb
    ("pylf_v", "pylf_v[0-9]_[a-z]{2}_[A-Za-z0-9]{40,}+"),  # Logfire
    *((f"xa{kind}t-", f"xa{kind}t-{_UUID}") for kind in "ap"),  # Axiom
    ("pdus+", rf"pdus\+_[A-Za-z0-9]{{6,}}_{_UUID}"),  # PagerDuty
    ("mdb_sa_sk_", "mdb_sa_sk_[A-Za-z0-9_-]{40,}+"),  # MongoDB Atlas
    *((f"cf{kind}_", f"cf{kind}_[A-Za-z0-9]{{40,}}+") for kind in ("ut", "at", "k")),  # Cloudflare
    ("jqqj99", "[A-Za-z0-9]{52}JQQJ99[A-Za-z0-9]{26}"),  # Azure: with a checksum in it
    ("bedrock-api-key-", "bedrock-api-key-[A-Za-z0-9+/=]{40,}+"),  # Amazon
    ("azdo", "[A-Za-z0-9]{76}AZDO[A-Za-z0-9]{4}"),  # Azure DevOps
    ("snyk_", r"snyk_[a-z]at\.[a-f0-9]{8}\.[A-Za-z0-9_.-]{40,}+"),
    ("pmat-", "PMAT-[A-Z0-9]{26}"),  # Postman collection
    ("wpl_ap1.", r"WPL_AP1\.[A-Za-z0-9]{16}\.[A-Za-z0-9+/]{6,}={0,2}"),  # LinkedIn
    ("fio-u-", "fio-u-[A-Za-z0-9_=-]{60,}+"),  # Frame.io
    ("retool_01", "retool_01[a-z0-9]{26}"),
    ("secret-live-", "secret-live-[A-Za-z0-9_=-]{30,}+"),  # Stytch
    ("nsec1", "nsec1[a-z0-9]{58}"),  # Nostr
    ("xprv", "[xyz]prv[1-9A-HJ-NP-Za-km-z]{100,}+"),  # an extended private key
    ("deviceauth_", "deviceauth_[a-f0-9]{20,}+"),  # OpenAI: what a device's sign-in is asked with
    ("fm2_", "fm2_[A-Za-z0-9+/=,_-]{60,}+"),  # Fly
    *((f"db{kind}", f"db{kind}_[A-Za-z0-9_-]{{40}}") for kind in ("tu", "tc")),  # dbt
    ("ctx7sk-", f"ctx7sk-{_UUID}"),  # Context7
    ("sha256~", "sha256~[A-Za-z0-9_-]{43}"),  # OpenShift
    *((f"pdl_{kind}_", f"pdl_{kind}_[A-Za-z0-9_+/]{{40,}}+") for kind in ("live_apikey", "sdbx_apikey", "ntfset")),  # Paddle
    ("abskqmvkcm9ja0fqsutles", "ABSKQmVkcm9ja0FQSUtleS[A-Za-z0-9+/]{20,}+={0,2}"),  # Amazon Bedrock: with its name in it
    ("v4.local.", r"v4\.local\.[A-Za-z0-9_-]{40,}+(?:\.[A-Za-z0-9_-]+)?"),  # PASETO
    ("v4.public.", r"v4\.public\.[A-Za-z0-9_-]{86,}+(?:\.[A-Za-z0-9_-]+)?"),
)

#: The middle part of a Discord token, a time in base64, begins with one of three letters so far.
_DISCORD = "[MNO][A-Za-z0-9]{23,27}"
_SIGNS = "abcdefghijklmnopqrstuvwxyz0123456789_-"

#: Forms with a short or common beginning: no letter or digit is before them, and a digit is among their signs.
WORDS: tuple[tuple[str, str], ...] = (
    ("rt_", r"rt_(?:[A-Za-z0-9]|(?=[a-z0-9_.-]*[A-Z])[_-])[A-Za-z0-9_.-]{18,}+"),  # OpenAI: refresh token
    ("sess-", "sess-[A-Za-z0-9]{20,}+"),  # OpenAI: session
    ("org-", "org-[A-Za-z0-9]{20,}+"),  # OpenAI: organization
    ("proj_", "proj_[A-Za-z0-9]{20,}+"),  # OpenAI: project
    ("sg.", r"SG\.[A-Za-z0-9_-]{16,}+\.[A-Za-z0-9_-]{16,}+"),  # SendGrid
    *((f"hv{kind}.", rf"hv{kind}\.[A-Za-z0-9_-]{{20,}}+") for kind in "sbr"),  # Vault
    ("xai-", "xai-[A-Za-z0-9]{20,}+"),  # xAI
    ("gsk_", "gsk_[A-Za-z0-9]{20,}+"),  # Groq
    ("csk-", "csk-[A-Za-z0-9]{20,}+"),  # Cerebras
    ("r8_", "r8_[A-Za-z0-9]{30,}+"),  # Replicate
    ("re_", "re_[A-Za-z0-9]{8,}_[A-Za-z0-9]{16,}+"),  # Resend
    ("fw_", "fw_[A-Za-z0-9]{20,}+"),  # Fireworks
    ("jina_", "jina_(?:[A-Za-z0-9]{30}|(?=[a-z0-9_-]*[A-Z])[A-Za-z0-9_-]{60})[A-Za-z0-9_-]*+"),
    ("e2b_", "e2b_[a-f0-9]{30,}+"),
    ("ntn_", "ntn_[A-Za-z0-9]{30,}+"),  # Notion
    ("secret_", "secret_[A-Za-z0-9]{43}"),
    ("pul-", "pul-[a-f0-9]{40}"),  # Pulumi
    ("fo1_", "fo1_[A-Za-z0-9_-]{30,}+"),  # Fly
    ("tfp_", "tfp_[A-Za-z0-9_.-]{40,}+"),  # Typeform
    *((f"sq{kind}_", f"sq{kind}_[a-f0-9]{{40}}") for kind in "apu"),  # SonarQube
    ("ltai", "LTAI[A-Za-z0-9]{16,}+"),  # Alibaba
    ("akcp", "AKCp[A-Za-z0-9]{40,}+"),  # Artifactory
    ("a3t", "A3T[A-Z0-9]{17}"),  # AWS, as the next two
    ("abia", "ABIA[0-9A-Z]{16}"),
    ("acca", "ACCA[0-9A-Z]{16}"),
    ("eaa", "EAA[A-Za-z0-9_-]{60,}+"),  # Facebook, Square
    *((f"sk{digit}", f"SK{digit}[0-9a-f]{{31}}") for digit in "0123456789abcdef"),  # Twilio
    ("key-", "key-[0-9a-f]{32}"),  # Mailgun
    ("-us", "[0-9a-f]{32}-us[0-9]{1,2}"),  # Mailchimp
    (":aa", "(?:bot)?[0-9]{8,10}:AA[A-Za-z0-9_-]{32,}+"),  # Telegram; `bot` is before it in the address of its API
    ("v1.0-", r"v1\.0-[a-f0-9]{24}-[a-f0-9]{100,}+"),  # Cloudflare origin
    ("ek_", "ek_[A-Za-z0-9]{20,}+"),  # OpenAI: ephemeral key of a browser
    ("pnu_", "pnu_[A-Za-z0-9]{30,}+"),  # Prefect
    ("k.eyj", r"[st]k\.eyJ[A-Za-z0-9_-]{20,}+\.[A-Za-z0-9_-]{10,}+"),  # Mapbox
    ("aqvn", "AQVN[A-Za-z0-9_-]{35,38}"),  # Yandex Cloud, as the next one
    ("y0_", "y0_[A-Za-z0-9_-]{50,}+"),
    *((f"ez{kind}k", f"EZ{kind.upper()}K[A-Za-z0-9]{{50,}}+") for kind in "at"),  # EasyPost
    ("ico-", "ico-[A-Za-z0-9]{32}(?![A-Za-z0-9])"),  # Infracost
    ("phx_", "phx_[A-Za-z0-9_]{40,}+"),  # PostHog
    ("napi_", "napi_[a-z0-9]{50,}+"),  # Neon
    ("rnd_", "rnd_[A-Za-z0-9]{28,}+"),  # Render
    ("sl.", r"sl\.[A-Za-z0-9_.-]{130,}+"),  # Dropbox
    ("sgp_", "sgp_(?:[A-Za-z0-9]{64}|(?:[a-f0-9]{16}_|local_)?[a-f0-9]{40})"),  # Segment, Sourcegraph
    ("oy2", "oy2[a-z0-9]{43}(?![A-Za-z0-9])"),  # NuGet
    ("cio", "cio[A-Za-z0-9]{32}(?![A-Za-z0-9])"),  # crates.io
    ("atbb", "ATBB[A-Za-z0-9]{32}(?![A-Za-z0-9+/])"),  # Bitbucket
    ("crsr_", "crsr_[a-f0-9]{60,}+"),  # Cursor
    ("essu_", "essu_[A-Za-z0-9+/=_-]{40,}+"),  # Elastic Cloud
    ("absk", "ABSK[A-Za-z0-9+/]{100,}+={0,2}"),  # Amazon Bedrock
    ("api-", "API-[A-Z0-9]{26}(?![A-Za-z0-9-])"),  # Octopus
    *((f"vc{kind}_", f"vc{kind}_[A-Za-z0-9]{{40,}}+") for kind in "akpir"),  # Vercel
    ("eyjrijoi", "eyJrIjoi[A-Za-z0-9+/]{60,}+={0,3}"),  # Grafana, before its prefixes
    *((f"{kind}at.", rf"{kind}at\.[A-Za-z0-9_-]{{22}}\.[0-9a-f]{{24}}\.[A-Za-z0-9]{{20}}") for kind in "ps"),  # Harness
    ("tk-us-", "tk-us-[A-Za-z0-9_-]{48}"),  # Scalingo
    *((f"{kind}_", f"{kind}_[a-f0-9]{{35}}(?![A-Za-z0-9])") for kind in ("live", "test")),  # Lob
    ("ops_eyj", "ops_eyJ[A-Za-z0-9+/=_-]{60,}+"),  # 1Password
    ("a3-", "A3-[A-Z0-9]{6}-(?:[A-Z0-9]{5,11}-){3,4}[A-Z0-9]{5}"),
    ("pat", r"pat[A-Za-z0-9]{14}\.[a-f0-9]{64}"),  # Airtable
    ("aio_", "aio_[A-Za-z0-9]{28}"),  # Adafruit
    *((f"{digit}q~", rf"[A-Za-z0-9_~.]{{3}}{digit}Q~[A-Za-z0-9_~.-]{{31,34}}") for digit in "0123456789"),  # Azure AD
    ("ac_", r"ac_[A-Za-z0-9_-]{40,}+(?:\.[A-Za-z0-9_-]{20,}+)?"),  # OpenAI: authorization code
    ("cmvmd", "cmVmd[A-Za-z0-9]{59}"),  # Artifactory reference
    ("pk_", "pk_(?:[0-9]{6,10}_[A-Z0-9]{32}|(?:[A-Za-z0-9]{6}_)?[a-f0-9]{34}(?![A-Za-z0-9_]))"),  # ClickUp, Klaviyo
    ("sk_", "sk_(?:[a-f0-9]{48}|(?=[a-z0-9_-]*[A-Z])[A-Za-z0-9_-]{43})(?![A-Za-z0-9_-])"),  # ElevenLabs, Novita
    ("pa-", "pa-(?=[a-z0-9_-]*[A-Z])[A-Za-z0-9_-]{43}(?![A-Za-z0-9_-])"),  # Voyage
    *(
        (f"{kind}-", f"{kind}-(?=[a-z0-9]*[A-Z])(?=[A-Z0-9]*[a-z])[A-Za-z0-9]{{22}}(?![A-Za-z0-9-])") for kind in ("ak", "as")
    ),  # Modal
    ("rpa_", "rpa_[A-Z0-9]{40}[A-Za-z0-9]{6}"),  # RunPod
    ("st.", rf"st\.(?:{_UUID}|[0-9a-f]{{24}})\.[0-9a-f]{{32}}\.[0-9a-f]{{32}}"),  # Infisical
    ("mfa.", r"mfa\.[A-Za-z0-9_-]{80,}+"),  # Discord, with a second factor
    ("secret-", "secret-(?=[a-z0-9]*[A-Z])[A-Za-z0-9]{40,}+"),  # Statsig
    ("akid", "AKID(?=[A-Z0-9]*[a-z])[A-Za-z0-9]{32}(?![A-Za-z0-9])"),  # Tencent Cloud
    ("t1.9eu", r"t1\.9eu[A-Za-z0-9_-]{20,}+={0,2}\.[A-Za-z0-9_-]{80,}+={0,2}"),  # Yandex Cloud
    ("00d", r"00D[A-Za-z0-9]{12,15}![A-Za-z0-9._]{60,}+"),  # Salesforce
    ("aaaaaaaaaaaaaaaa", "AAAAAAAAAAAAAAAAAAAA[A-Za-z0-9%]{60,140}+(?![A-Za-z0-9%/+])"),  # X
    ("esecret_", "esecret_[a-z0-9]{25,}+"),  # Anyscale
    *((f"bb_{kind}_", f"bb_{kind}_(?=[a-z0-9_-]*[A-Z])[A-Za-z0-9_-]{{20,}}+") for kind in ("live", "test")),  # Browserbase
    ("dtn_", "dtn_[a-f0-9]{64}"),  # Daytona
    ("m0-", "m0-(?=[a-z0-9]*[A-Z])[A-Za-z0-9]{40}(?![A-Za-z0-9])"),  # Mem0
    ("secret_", r"secret_[A-Za-z0-9_-]{1,64}_[a-f0-9]{32}\.[A-Za-z0-9]{32}"),  # Lambda
    ("llx-", "llx-[A-Za-z0-9]{40,}+"),  # LlamaCloud
    ("opk_", "opk_[A-Za-z0-9]{40,}+"),  # OpenPipe
    *((word, f"{word}[a-f0-9]{{32}}(?:-[0-9])?(?![A-Za-z0-9])") for word in ("dose", "dkea")),  # Databricks
    ("perm-", r"perm-[A-Za-z0-9=]{2,}+\.[A-Za-z0-9+/=]{2,}+\.[A-Za-z0-9]{20,}+"),  # YouTrack
    ("md-", "md-(?=[a-z0-9_-]*[A-Z])(?=[A-Z0-9_-]*[a-z])[A-Za-z0-9_-]{22}(?![A-Za-z0-9_-])"),  # Mandrill
    ("dg9ro", "dG9rO[A-Za-z0-9]{8}[A-Za-z0-9+/]{40,}+={0,2}"),  # Intercom
    ("igqv", "IGQV[A-Za-z0-9_-]{60,}+"),  # Instagram
    ("pina_", "pina_[A-Z0-9]{50,}+"),  # Pinterest
    ("tk_", "tk_[a-z0-9]{29}(?![A-Za-z0-9_])"),  # ntfy
    ("aq.ab8rn6", r"AQ\.Ab8RN6[A-Za-z0-9_-]{30,}+"),  # Google: the new form of a key
    *(
        (f".{a}{b}", rf"{_DISCORD}\.(?i:{a}{b})[A-Za-z0-9_-]{{4}}\.[A-Za-z0-9_-]{{27,}}+") for a in "gxy" for b in _SIGNS
    ),  # Discord
)


#: Most forms are never met, and compiling all of them would take longer than everything else that a recorder loads.
_compiled = lru_cache(maxsize=None)(re.compile)


def find_distinct(form: bytes, data: bytes, low: bytes) -> Iterator[Span]:
    """Yield the keys that their form alone identifies, at any place in the text."""
    for found in _compiled(form).finditer(data):
        if not is_placeholder(found[0]) and len(set(found[0][-_FILLER:])) > 1:
            yield Span(*found.span(), "api-key")


def find_words(form: bytes, data: bytes, low: bytes) -> Iterator[Span]:
    """Yield API keys with a short prefix. A key with a short prefix must begin a word (after any escapes) and contain a digit."""
    for found in _compiled(form).finditer(data):
        alone = word_start(data, found.start(), _ALNUM) == found.start()
        filler = len(set(found[0][-_FILLER:])) == 1
        if alone and _DIGIT.search(found[0]) and not filler and not is_placeholder(found[0]):
            yield Span(*found.span(), "api-key")


def _finder(find: Callable[[bytes, bytes, bytes], Iterator[Span]], word: str, form: str) -> Finder:
    """Return the function that finds one form of API key.

    The function searches all of a text if the key may contain a character such as `/`, because such a character splits the
    key into short words.
    """
    run = _RUN.search(form)
    parted = "+" in word or (run is not None and len(word) < LONG and any(sign in run[1] for sign in "/+,%"))
    return Finder(word, partial(find, form.encode()), long=not parted)


SERVICES: tuple[Finder, ...] = (
    *(_finder(find_distinct, word, form) for word, form in KEY_FORMS if word != "sk-"),
    *(_finder(find_distinct, word, form) for word, form in DISTINCT),
    *(_finder(find_words, word, form) for word, form in WORDS),
)
