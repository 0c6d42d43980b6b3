# `make conformance` and `make test` work on a fresh clone: each makes .venv and installs what it needs.
.DEFAULT_GOAL := help
.PHONY: help fuzz setup conformance test real differential browser wheel-test pythons docs drift-matrix bench strength defects mutants lint record lock clean

# pytest rewrites each module that it runs. A run starts hundreds of programs: each would do it again where bytecode is not kept.
unexport PYTHONDONTWRITEBYTECODE

PYTHON ?= python3
CODEX ?= 0.92.0
BIN := .venv/bin
STAMP := .venv/.installed
# Two cores: the suites' cases are processes of their own and do not disturb each other.
JOBS ?= 2
# Cases that stand together share processes: each worker takes a run of them, and steals when it has none left.
SHARED := -n $(JOBS) --dist worksteal
# The project's own tests wait for processes and for ends of time limits, much of their time: five workers for two cores.
WORKERS := -n $$(( $(JOBS) * 5 / 2 )) --dist worksteal
# The suites use none of these plugins, which take longer to load than a hundred cases to run.
LEAN := -p no:hypothesispytest -p no:syrupy -p no:asyncio

# A real server or a browser may race: only the cases that tests/racy.toml lists run a second time, and the last lines count them.
gate := $(BIN)/python -m tests.gate
codex = for try in 1 2 3; do $(BIN)/codex-replay codex install $(CODEX) && exit 0; echo "not installed (try $$try of 3)"; sleep 5; done; exit 1

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

setup: $(STAMP) ## make .venv and install the locked dependencies

$(STAMP): requirements.lock pyproject.toml fake_server/bin/fake-codex
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "codex-replay needs Python 3.11 or later, and $(PYTHON) is older: make PYTHON=python3.11 ..."; exit 2; }
	$(PYTHON) -m venv .venv
	@for try in 1 2 3; do \
	  $(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock && exit 0; \
	  echo "pip install failed (try $$try of 3)"; sleep 5; \
	done; exit 1
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@# pip compiles what it installs, but not what stays here; and a run starts hundreds of programs.
	@$(BIN)/python -m compileall -q harness fake_server
	@touch $@

conformance: $(STAMP) ## the suites on the embedded fakes: no network, no account
	$(BIN)/python -m pytest suites $(LEAN) $(SHARED)
	$(BIN)/python -m pytest suites/app_server $(LEAN) $(SHARED) --app-server fake@0.169.0
	$(BIN)/python -m pytest suites/proxy $(LEAN) $(SHARED) --profile as-specified --report reports/proxy-as-specified

test: $(STAMP) ## the project's own tests, lint and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	@# mypy uses one core and the tests often wait: beside them it costs little. Its result is printed last.
	@said=$$(mktemp); $(BIN)/mypy >$$said 2>&1 & types=$$!; \
	$(BIN)/python -m pytest tests $(WORKERS) --ignore tests/real --ignore tests/browser --ignore tests/wheel; cases=$$?; \
	wait $$types; types=$$?; cat $$said; rm -f $$said; exit $$((cases | types))

strength: $(STAMP) ## the proxy suite's checks on broken proxies: each must be found, each check must find one
	$(BIN)/python -m pytest suites/proxy $(LEAN) -p tests.strength.plugin --strength-jobs $(JOBS) $(if $(VARIANTS),--variants '$(VARIANTS)') $(if $(CHECKS),-k '$(CHECKS)')

defects: $(STAMP) ## the known classes of defects in three proxies, alone: DEFECTS="--pairs --app-server codex@0.92.0" for more
	$(BIN)/python -m tests.strength.defects $(DEFECTS)

fuzz: $(STAMP) ## hostile input of every kind; resumable: FUZZ="--seed 2 backend_bodies"
	$(BIN)/python -m tests.fuzz $(FUZZ)

mutants: $(STAMP) ## machine-made mutants of what the references and the fakes send: each must be found by a check, or be allowed by the table
	$(BIN)/python -m pytest suites/$(SUITE) --ignore suites/schema $(LEAN) -p tests.mutants.plugin --mutants-jobs $(JOBS) $(if $(MUTANTS),--mutants '$(MUTANTS)') $(if $(JSON),--mutants-report '$(JSON)')

lint: $(STAMP) ## ruff and mypy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

real: $(STAMP) ## the suites and the real-binary tests on codex@$(CODEX), offline
	@$(codex)
	$(gate) suites $(LEAN) -n $(JOBS) --app-server codex@$(CODEX) --ignore suites/proxy
	$(gate) suites/proxy $(LEAN) -n $(JOBS) --app-server codex@$(CODEX) --profile works-on-0.92 --report reports/proxy-$(CODEX)
	$(gate) suites/proxy/requests/test_threads.py $(LEAN) -n $(JOBS) --app-server codex@$(CODEX) --report reports/proxy-$(CODEX)-speaks-v2
	@# The tool-call vectors judge the proxy's parser alone; they have run in the profile before.
	$(gate) suites/proxy $(LEAN) -n $(JOBS) --app-server codex@$(CODEX) --profile as-specified --report reports/proxy-$(CODEX)-as-specified --ignore suites/proxy/replies/test_tool_calls.py
	$(gate) tests/real $(SHARED)

browser: $(STAMP) ## the report page in a headless Chromium (Debian: chromium, chromium-driver)
	$(gate) tests/browser -n $(JOBS)

differential: $(STAMP) ## 40 random scenarios of each class on codex@$(CODEX) and on the scripted fake: both must send the same
	@$(codex)
	CODEX_REPLAY_SCENARIOS=40 $(BIN)/python -m pytest tests/real/differential/test_differential.py -s

record: $(STAMP) ## record every cassette again from codex@$(CODEX); git diff is the drift
	@$(codex)
	$(BIN)/python -m pytest suites/app_server --app-server codex@$(CODEX) --record all

drift-matrix: $(STAMP) ## reports/drift: what each Codex version breaks; resumable, one binary at a time
	$(BIN)/python -m tests.tools.drift_matrix

wheel-test: $(STAMP) ## the wheel in an empty environment: fixtures, fake-codex, the packaged suites
	$(BIN)/python -m pytest tests/wheel -n $(JOBS) --dist loadfile

pythons: $(STAMP) ## the wheel on every declared Python that is here: python3.X on PATH, or pyenv's
	$(BIN)/python -m pytest tests/wheel/test_pythons.py

docs: .venv/.docs ## the documentation as a site, in build/site: no warning, nothing from elsewhere
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict --site-dir build/site
	$(BIN)/python tests/project/documents.py build/site

.venv/.docs: $(STAMP) requirements-docs.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-docs.lock
	@touch $@

bench: $(STAMP) ## side-by-side benchmarks, against the real binary where it is the peer
	@$(codex)
	$(BIN)/python -m bench

lock: ## rewrite requirements.lock and requirements-docs.lock from pyproject.toml (needs uv)
	uv pip compile --quiet --generate-hashes --universal --python-version 3.11 --extra dev pyproject.toml -o requirements.lock
	uv pip compile --quiet --generate-hashes --universal --python-version 3.11 --extra docs -c requirements.lock pyproject.toml -o requirements-docs.lock

clean: ## remove all build results
	rm -rf .venv build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
