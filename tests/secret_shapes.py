# ruff: noqa: E501 - one secret a line
"""Secrets of every shape, and texts that are none: what redaction is measured by.

Secrets are put together from pieces when the tests run, so that no scanner takes this file for a leak.
"""

import base64
import json
import string
from random import Random

HEX = "0123456789abcdef"
LETTERS = string.ascii_letters
WORD = LETTERS + string.digits


def some(kind: str, number: int, seed: str = "") -> str:
    """So many characters of this kind, the same in each run; letters and digits are among them where both can be."""
    random = Random(f"{kind} {number} {seed}")  # noqa: S311 - the same in each run
    while True:
        text = "".join(random.choice(kind) for _ in range(number))
        if number < 8 or ((any(map(str.isdigit, text)) or kind.isalpha()) and any(map(str.isalpha, text))):
            return text


def _issued() -> dict[str, tuple[str, str]]:
    """Of each issuer a text with ``{}`` and the secret in its place."""
    upper = string.ascii_uppercase + string.digits
    jwt = ".".join(("ey" + "J" + some(WORD, 20), "ey" + "J" + some(WORD, 40), some(WORD, 43)))
    return {
        "NVIDIA NGC": ("login with {} refused", "nv" + "api-" + some(WORD, 64)),
        "Lambda": ("key {} has no such instance", "secret" + "_mykey_" + some(WORD, 32) + "." + some(WORD, 32)),
        "RunPod": ("runpodctl config {}", "rp" + "a_" + some(upper, 44)),
        "Vast": ("vast_api_key: {}", some(HEX, 64)),
        "AWS id": ("The key {} is disabled", "AK" + "IA" + some(upper, 16)),
        "AWS temporary id": ("The key {} is expired", "AS" + "IA" + some(upper, 16)),
        "AWS secret": ("aws_secret_access_key = {}", some(WORD + "/+", 40)),
        "AWS secret in JSON": ('{{"SecretAccessKey": "{}"}}', some(WORD + "/+", 40)),
        "AWS session": ("export AWS_SESSION_TOKEN={}", some(WORD + "/+=", 120)),
        "Azure storage": (
            "DefaultEndpointsProtocol=https;AccountName=me;AccountKey={};EndpointSuffix=core.windows.net",
            some(WORD + "+/", 86) + "==",
        ),
        "Azure SAS": ("blob?sv=2022-11-02&se=2027&sig={}", some(WORD, 43) + "%3D"),
        "Azure client": ("azure says {} is expired", some(WORD, 3) + "8Q" + "~" + some(WORD, 34)),
        "Google API": ("calling with {} failed", "AI" + "za" + some(WORD + "_-", 35)),
        "Google OAuth": ("got {} for an hour", "ya" + "29." + some(WORD + "_-", 100)),
        "Google client": ("client {} unknown", "GOC" + "SPX-" + some(WORD, 28)),
        "Google refresh": ("refresh with {} failed", "1/" + "/0" + some(WORD, 60)),
        "Google service account": (
            '{{"type": "service_account", "private_key": "{}"}}',
            "-----BEGIN " + "PRIVATE KEY-----\\n" + some(WORD, 60) + "\\n-----END " + "PRIVATE KEY-----\\n",
        ),
        "DigitalOcean": ("doctl auth init -t {}", "dop" + "_v1_" + some(HEX, 64)),
        "Databricks": ("host and {} given", "da" + "pi" + some(HEX, 32)),
        "Alibaba": ("id {} unknown", "LT" + "AI" + some(WORD, 20)),
        "Hugging Face": ("huggingface-cli login with {} failed", "h" + "f_" + some(LETTERS, 34)),
        "Weights & Biases": ("wandb: logging in with {}", some(HEX, 40)),
        "Weights & Biases netrc": ("machine api.wandb.ai\n  login user\n  password {}", some(HEX, 40)),
        "OpenAI": ("Incorrect API key provided: {}.", "s" + "k-" + some(WORD, 48)),
        "OpenAI project": ("openai {} refused", "s" + "k-proj-" + some(WORD + "_-", 100)),
        "Anthropic": ("x-api-key: {}", "s" + "k-ant-api03-" + some(WORD + "_-", 93) + "AA"),
        "Groq": ("groq {} refused", "gs" + "k_" + some(WORD, 52)),
        "Replicate": ("replicate {}", "r" + "8_" + some(WORD, 37)),
        "Kaggle": ('{{"username":"me","key":"{}"}}', some(HEX, 32)),
        "Comet": ("COMET_API_KEY={}", some(WORD, 25)),
        "Neptune": ("neptune_api_token: {}", some(WORD, 100) + "=="),
        "GitHub": ("cloning with {} failed", "gh" + "p_" + some(WORD, 36)),
        "GitHub server": ("GITHUB says {}", "gh" + "s_" + some(WORD, 36)),
        "GitHub fine": ("cloning with {} failed", "github" + "_pat_" + some(WORD, 22) + "_" + some(WORD, 59)),
        "GitLab": ("git clone with {}", "gl" + "pat-" + some(WORD, 20)),
        "GitLab CI": ("job token {}", "gl" + "cbt-64_" + some(WORD, 20)),
        "Bitbucket": ("app {}", "AT" + "BB" + some(WORD, 32)),
        "npm": ("//registry.npmjs.org/:_authToken={}", "np" + "m_" + some(WORD, 36)),
        "npm old": ("//registry.npmjs.org/:_authToken={}", some(HEX, 8) + "-1234-4321-aaaa-" + some(HEX, 12)),
        "PyPI": ("twine upload -p {}", "py" + "pi-AgEIcHlwaS5vcmc" + some(WORD + "_-", 120)),
        "PyPI short": ("uploading with {}", "py" + "pi-AgEI" + some(WORD, 16)),
        "Docker Hub": ("docker says {} is gone", "dckr" + "_pat_" + some(WORD, 27)),
        "Docker auth": (
            '{{"auths":{{"https://index.docker.io/v1/":{{"auth":"{}"}}}}}}',
            base64.b64encode(f"me:{some(WORD, 16)}".encode()).decode(),
        ),
        "Terraform": ("tf aB3dE5fG7hI9jK.{}", "atlas" + "v1." + some(WORD, 60)),
        "Vault": ("vault login {}", "hv" + "s." + some(WORD, 24)),
        "Vault batch": ("X-Vault-Token: {}", "hv" + "b." + some(WORD, 138)),
        "Vault old": ("VAULT_TOKEN=s.{}", some(WORD, 24)),
        "age": ("age -i {}", "AGE-" + "SECRET-KEY-1" + some(upper, 58)),
        "SendGrid": ("mail by {} failed", "S" + "G." + some(WORD, 22) + "." + some(WORD, 43)),
        "Mailgun": ("mailgun {}", "ke" + "y-" + some(HEX, 32)),
        "Brevo": ("brevo {}", "xkey" + "sib-" + some(HEX, 64) + "-" + some(WORD, 16)),
        "Twilio": ("twilio auth {}", some(HEX, 32)),
        "Stripe": ("stripe: {} is no key", "s" + "k_live_" + some(WORD, 24)),
        "Stripe restricted": ("stripe: {} is no key", "r" + "k_test_" + some(WORD, 24)),
        "Square": ("square {}", "sq" + "0atp-" + some(WORD, 22)),
        "Shopify": ("shop {}", "shp" + "at_" + some(HEX, 32)),
        "Slack bot": ("slack {}", "xo" + "xb-1234567890-1234567890123-" + some(WORD, 24)),
        "Slack app": ("slack {}", "xa" + "pp-1-A0-123-" + some(HEX, 40)),
        "Slack webhook": ("POST https://hooks.slack.com/services/{} 404", "T0" + "AB/B0" + "CD/" + some(WORD, 24)),
        "Discord webhook": (
            "POST https://discord.com/api/webhooks/{} 404", "1234567890/" + some(WORD + "_-", 68)
        ),
        "Discord bot": ("discord.login('{}')", "M" + some(WORD, 23) + ".GhIjKl." + some(WORD + "_", 27)),
        "Teams webhook": (
            "https://acme.webhook.office.com/{}",
            "webhookb2/" + some(HEX, 32) + "@" + some(HEX, 32) + "/IncomingWebhook/" + some(HEX, 32),
        ),
        "Teams workflow": (
            "https://prod-01.westus.logic.azure.com/workflows/a/triggers/manual/paths/invoke?{}",
            "api-version=2016&sig=" + some(WORD, 43),
        ),
        "Telegram URL": ("GET https://api.telegram.org/bot{}/getMe failed", "123456789:AA" + some(WORD, 33)),
        "Telegram token": ("telegram bot 123456789:{}", "AA" + some(WORD + "_-", 33)),
        "Google Chat": (
            "https://chat.googleapis.com/v1/spaces/A/messages?{}", "key=" + some(WORD, 39) + "&token=" + some(WORD, 43)
        ),
        "Zapier": ("https://hooks.zapier.com/hooks/catch/{}", "123456/" + some(WORD, 7)),
        "Grafana": ("grafana {}", "gl" + "sa_" + some(WORD, 32) + "_" + some(HEX, 8)),
        "New Relic": ("newrelic {}", "NR" + "AK-" + some(upper, 27)),
        "Datadog": ("DD_API_KEY: {}", some(HEX, 32)),
        "Linear": ("linear {}", "lin" + "_api_" + some(WORD, 40)),
        "Notion": ("notion {}", "nt" + "n_" + some(WORD, 46)),
        "Figma": ("figma {}", "fig" + "d_" + some(WORD, 40)),
        "JSON web token": ("got {} back", jwt),
        "JSON web token in a cookie": ("Cookie: theme=dark; session={}", jwt),
        "bcrypt": ("stored {}", "$2" + "b$12$" + some(WORD, 53)),
    }  # fmt: skip


def _written() -> dict[str, tuple[str, str]]:
    """Passwords that only the words around them tell."""
    password = "Tr0ub" + "4dor&3"
    basic = base64.b64encode(f"me:{password}".encode()).decode()
    return {
        "variable": ("DB_PASS={}", password),
        "variable, exported": ("export SMTP_PW={}", password),
        "variable with commas": ("DB_PASSWORD={}", "a,b;c" + password),
        "variable, quoted": ("SSHPASS='{}' ./run", password),
        "webhook variable": ("SLACK_WEBHOOK={}", "https://example.org/h/" + some(WORD, 24)),
        "JWT variable": ("JWT={}", some(WORD, 60)),
        "YAML": ("database:\n  password: {}\n  port: 5432", password),
        "JSON": ('{{"user": "me", "password": "{}"}}', password),
        "JSON in JSON": ('"{{\\"password\\": \\"{}\\"}}"', password),
        "JSON twice escaped": ('{{\\\\\\"api_key\\\\\\": \\\\\\"{}\\\\\\"}}', some(WORD, 20)),
        "Python": ("    connect(user='me', password='{}')", password),
        "Python, unquoted": ("connect(user=me, password={})", password),
        "Python, environ": ("os.environ['DB_PASS'] = '{}'", password),
        "camel case": ('{{"clientSecret": "{}"}}', password),
        "option": ("running mysqldump --password {} db", password),
        "option with =": ("ran client --pw={} and failed", password),
        "option in a list": ("['client', '--password', '{}', '--lr', '3']", password),
        "option of a key": ("train.py --api-key {} --lr 3", some(WORD, 20)),
        "curl": ("curl -s -u me:{} https://example.org", password),
        "curl, long": ("curl --user 'me:{}' https://example.org", password),
        "sshpass": ("sshpass -p {} ssh me@host", password),
        "mysql": ("mysql -u root -p{} db", password),
        "redis-cli": ("redis-cli -h cache -a {}", password),
        "docker login": ("docker login -u me -p {} registry.example.org", password),
        "openssl": ("openssl rsa -passin pass:{} -in k.pem", password),
        "URL": ("postgresql://me:{}@db.example.org/x", password.replace("&", "%26")),
        "URL without a user": ("redis://:{}@cache:6379", "hunter" + "22x"),
        "git URL": ("https://{}@github.com/a/b.git", some(WORD, 20)),
        "query": ("GET https://example.org/w.pt?{} failed", "X-Amz-Signature=" + some(HEX, 64)),
        "DSN": ("host=db user=me password={} dbname=x", password),
        "connection string": ("Server=db;User Id=me;Password={};Encrypt=true", "Tr0ub" + "4dor"),
        "pgpass": ("db.example.org:5432:x:me:{}", password),
        "netrc": ("machine example.org login me password {}", password),
        "Basic": ("Authorization: Basic {}", basic),
        "Bearer": ("> Authorization: Bearer {}", some(WORD, 30)),
        "Proxy": ("Proxy-Authorization: Basic {}", basic),
        "header of a key": ("X-Api-Key: {}", some(WORD, 24)),
        "headers in Python": ("{{'Authorization': 'token {}', 'Accept': '*'}}", some(WORD, 24)),
        "cookie": ("Set-Cookie: sid={}; Path=/; HttpOnly", some(WORD, 32)),
        "said": ("the API key {} was refused", some(WORD, 32)),
        "said otherwise": ("invalid token: {}", some(WORD, 32)),
        "PEM": ("key:\n{}\nend", "-----BEGIN RSA " + f"PRIVATE KEY-----\n{some(WORD, 64)}\n-----END RSA " + "PRIVATE KEY-----"),
        "OpenSSH": ("{}", "-----BEGIN OPENSSH " + f"PRIVATE KEY-----\n{some(WORD, 64)}\n-----END OPENSSH " + "PRIVATE KEY-----"),
        "PEM, cut off": ("{}", "-----BEGIN EC " + f"PRIVATE KEY-----\n{some(WORD, 64)}"),
        "PGP": (
            "{}", "-----BEGIN PGP " + f"PRIVATE KEY BLOCK-----\n\n{some(WORD, 64)}\n-----END PGP " + "PRIVATE KEY BLOCK-----"
        ),
        "PuTTY": ("{}", "PuTTY-User-Key-" + f"File-2: ssh-rsa\nPrivate-Lines: 1\n{some(WORD, 60)}\nPrivate-MAC: {some(HEX, 40)}"),
        "base64 of JSON": ("config {}", base64.b64encode(json.dumps({"password": password, "user": "me"}).encode()).decode()),
        "base64 of a variable": ("data:\n  env: {}", base64.b64encode(f"DB_PASSWORD={password}".encode()).decode()),
        "Kubernetes": ("kind: Secret\ndata:\n  password: {}", base64.b64encode(password.encode()).decode()),
        "after an escape in JSON": ('"log": "first\\n{}"', "gh" + "p_" + some(WORD, 36)),
        "coloured name": ("\x1b[33mpassword\x1b[0m=\x1b[1m{}\x1b[0m", password),
    }  # fmt: skip


def split_by_escapes(secret: str) -> str:
    """As a program that colours parts of it prints it."""
    return f"{secret[:9]}\x1b[31m{secret[9:14]}\x1b[0m{secret[14:]}"


def split_by_lines(secret: str) -> str:
    """As a terminal of 60 columns prints it."""
    return f"{'the log of a run that says a lot before it comes to '}{secret[:12]}\n{secret[12:]}"


SHAPES = {**_issued(), **_written()}
"""By name a text with ``{}``, and the secret."""

HARMLESS = [
    "num_tokens = 1024",
    'tokenizer="gpt2"',
    "max_tokens=4096, temperature=0.7",
    "token_type_ids: tensor([0, 0, 1])",
    "rows = sorted(rows, key=len)",
    "rows.sort(key=lambda row: row.loss)",
    "pad_token = '[PAD]'",
    "eos_token='</s>', bos_token='<s>'",
    "tokens per second: 12034.5",
    "throughput: 3,141 tokens/s (key metric)",
    "tokens = tokenizer.encode(text)",
    "special_tokens_map.json was not found",
    "next_token = logits.argmax(-1)",
    "image_token_index=32000",
    "vocab_size: 50257, n_tokens: 300000000000",
    "HEAD is at 3f2a9b1c0d4e5f60718293a4b5c6d7e8f9012345",
    "commit 74fbb2dc9e1f0a2b3c4d5e6f708192a3b4c5d6e7 says so",
    "sha256: e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "output_sha256=9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "digest e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855 of the image",
    "pip install x --hash=sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "run id 7d444840-9dc0-11d1-b245-5ffdce74fad2",
    "def check(authorization: str) -> None:",
    "def login(password: str, token: str | None = None) -> None:",
    "password = getpass.getpass()",
    "token = os.environ['HF_TOKEN']",
    "api_key=args.api_key",
    "login(token=hub_token)",
    "secret = os.getenv('X')",
    "KeyError: 'DB_PASS'",
    "export DB_PASS before you start",
    "password: ${{ secrets.DB_PASS }}",
    "password=$DB_PASS",
    "password: <your password>",
    "token: null",
    "python train.py --tokenizer gpt2 --max-tokens 512 --key-size 3",
    "usage: train.py [--token TOKEN] [--password PASSWORD]",
    "use --password to set one",
    "python train.py --padding 3 -p 8080",
    "forward_pass=12.3 ms, backward_pass=24.1 ms",
    "bypass: 0.5, compass=north",
    "primary_key=id, foreign_key=run_id",
    "cache_key=a1b2c3d4e5f6",
    "state_dict key: transformer.h.0.attn.c_attn.weight",
    "Unexpected key(s) in state_dict: 'module.layer4.2.conv3.weight'",
    "Missing key(s): layer1.0.downsample.0.weight, fc.bias",
    "author: Ann Lee <ann@example.org>",
    "keyboard=qwerty, monkey=3, turkey=4",
    "see https://pytorch.org/docs/stable/index.html#tokens",
    "s3://bucket/key/to/weights.pt, gs://bucket/a@b",
    "postgresql://db.example.org:5432/advisor",
    "Eyjafjallajokull.observations.nc was opened",
    "secretary=ann, secretion=0.3",
    "loss=0.123 lr=3e-4 step=1000/20000 grad_norm=1.5",
    "aten::scaled_dot_product_attention float16[16, 12, 1024, 64]",
    "ncu -k regex:volta_fp16_s884gemm_fp16_128x128_ldg8_f2f_nn",
    "NVIDIA A100-SXM4-80GB, driver 550.54.15, CUDA 12.4",
    "p4d.24xlarge us-east-1a on-demand 32.7726 USD/h",
    'File "/usr/lib/python3.12/site-packages/torch/nn/modules/module.py", line 1553, in _call_impl',
    "torch-2.13.0+cu126-cp312-cp312-manylinux_2_28_x86_64.whl",
    "sk-learn and scikit-learn are two names; hf_transfer is a package",
    "np.random.seed(1234567890123456789)",
    "AKIA is how ids of keys begin",
    "-----BEGIN CERTIFICATE-----",
    "W&B run r8_baseline of wandb project resnet50",
    "npm_config_registry=https://registry.npmjs.org/",
    "basic auth is not supported; auth: none",
    "token 12 of 1024: the",
    "SyntaxError: unexpected token: expected ':'",
    "The tokenizer class you load from this checkpoint is not the same type as the class this function is called from.",
    "Token indices sequence length is longer than the specified maximum (1033 > 1024)",
    "\x1b[32mepoch 3\x1b[0m loss 0.5",
    "advisor recommend train.py --budget 50 --deadline 12h --provider aws -- --batch-size 64",
]
"""Texts that stay as they are."""
