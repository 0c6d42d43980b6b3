"""Secrets of typed and wrapped values in code, and of more files and commands, for `test_redact_kinds`, and texts like them."""

# ruff: noqa: E501 - tables
from __future__ import annotations

from tests.core.redact.planted import PW2, made

TOK = made(40)
TEXTS: dict[str, tuple[str, str]] = {
    "netrc in a difference": ("E         + machine h\nE         +   login ann\nE         +   password {}", PW2), "a URL as a path": ("The file cloudinary:/06903694:{}@shop cannot be read.", PW2),
    "plist in a difference": ("+ <key>APIToken</key>\n+ <string>{}</string>", TOK), "rust static, in repr": ("const API_KEY: &\\\\'static str = \"{}\";", TOK),
    "httpie bearer": ("http -A bearer -a {} https://api.example/v1", TOK), "httpie auth-type": ("https --auth-type=bearer --auth {} https://x", TOK),
    "plist token": ("<key>APIToken</key>\n<string>{}</string>", TOK), "python typed": ('password: str = "{}"', PW2),
    "python union": ('api_key: Optional[str] = "{}"', TOK), "python union 2": ('token: str | None = "{}"', TOK),
    "python bytes": ("SECRET_KEY = b'{}'", TOK), "python f": ('password = f"{}"', PW2), "pydantic": ('password=SecretStr("{}")', PW2),
    "ts typed": ("private readonly password: string = '{}';", PW2), "kotlin": ('val authToken: String = "{}"', TOK),
    "swift typed": ('let apiKey: String? = "{}"', TOK), "rust from": ('let api_key = String::from("{}");', TOK),
    "rust ref": ('let password: &str = "{}";', PW2), "rust static": ("const API_KEY: &'static str = \"{}\";", TOK),
    "rust secret": ('let password = SecretString::new("{}".into());', PW2), "rust option": ('api_key: Some(String::from("{}"))', TOK),
    "go var": ('var dbPassword string = "{}"', PW2), "go short": ('password := "{}"', PW2), "go const": ('const apiKey string = "{}"', TOK),
    "c array": ('const char password[] = "{}";', PW2), "c# key": ('var credential = new AzureKeyCredential("{}");', TOK),
    "objective-c": ('@"password" : @"{}"', PW2), "clojure": ('(connect {{:password "{}" :user "ann"}})', PW2), "make": ("API_TOKEN ?= {}", TOK),
    "getenv": ('os.getenv("DB_PASSWORD", "{}")', PW2), "environ get": ('os.environ.get("API_KEY", "{}")', TOK),
    "setdefault": ('os.environ.setdefault("DB_PASSWORD", "{}")', PW2), "ruby fetch": ("ENV.fetch('DB_PASSWORD', '{}')", PW2),
    "laravel env": ("env('DB_PASSWORD', '{}')", PW2), "decouple": ("config('SECRET_KEY', default='{}')", TOK),
    "java property": ('System.setProperty("db.password", "{}");', PW2), "properties": ('props.put("password", "{}");', PW2),
    "local storage": ("localStorage.setItem('access_token', '{}')", TOK), "auth tuple": ("s.auth = ('ann', '{}')", PW2),
    "login variable": ("smtp.login(user, '{}')", PW2), "terraform default": ('variable "db_password" {{\n  default = "{}"\n}}', PW2),
    "yaml block": ("password: >-\n  {}\n", PW2), "bind": ('key "rndc" {{ algorithm hmac-sha256; secret "{}="; }};', TOK),
    "wifi": ("WIFI:T:WPA;S:Home;P:{};;", PW2), "ldap hash": ("userPassword: {{SSHA}}{}", TOK),
    "luks": ("cryptsetup luksOpen /dev/sda1 x <<< '{}'", PW2), "vncpasswd": ("vncpasswd <<< '{}'", PW2),
    "openssl aes": ("openssl aes-256-cbc -k {} -in f", PW2), "1password": ("ops_eyJ_-a7a7a7a7a7a7a7a7a7a7a7a7{}", TOK),
}  # fmt: skip
HARMLESS = [
    'OPENAI_API_KEY="$(pass show openai)"', 'TOKEN="$(curl -s https://x/token | jq -r .token)"', '-H "Authorization: Bearer ${GITHUB_TOKEN}"',
    "CREATE USER ann WITH PASSWORD :'pw';", "sed -i 's/password=.*/password=REDACTED/' config.ini", 'wget --password="$PW" ftp://h/f',
    'PGPASSWORD="$pw" psql', "PASSWORD_MIN_LENGTH=12", "SECRET_KEY_LENGTH=32", "PASSWORD_RESET_URL=https://example.com/reset",
    "PASSWORD_RESET_TIMEOUT=3600", "CREDENTIALS_PATH=./creds.json", "GOOGLE_APPLICATION_CREDENTIALS=/work/key.json", 'auth=("user", "pass")',
    "ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", "postgres://user:password@localhost/db", "postgres://$USER:$PASS@db/shop",
    'DB_PASSWORD="${DB_PASSWORD:?set it}"', "API_KEY=changeme", "API_KEY=xxx", "api_key=api_key,", "password=password)", "secret=secret,",
    "api_key=settings.API_KEY", "api_key=self._api_key", "AWS_SECRET_ACCESS_KEY=$", 'api_key: "${{ secrets.OP', "t.py::test_y[mysql -p3306]",
    'raise ValueError("api_key", "must be set")', 'errors.add("password", "is too short")', 't("password", "Passwort")',
    'validate("api_key", "required|min:8")', 'password = ask_password("Your 2 passwords")', "password: String = String::new(),",
    "let password: &str = config.password();", 'password := os.Getenv("DB_PASSWORD")', 'page.fill("password", user.password2)',
    'secret "db-credentials-v2" created', 'variable "db_password" { type = string }', "image:{ssha}", "WIFI: on", "password <name>",
    "apiKey?: string = undefined;", ".login(user, password)", 'viper.SetDefault("token.ttl", "24h")', "const password: string = getPassword();",
]  # fmt: skip
