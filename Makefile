PYTHON ?= python3
BIN := .venv/bin

.PHONY: setup shell test test-slow check docs links gallery dist dist-oldest dist-newest mutants reproduce bench chaos explorer clean
.DELETE_ON_ERROR:

setup: .venv/ready

# PyTorch's own index has builds of torch for the processor alone. On Linux, pip's default index only has the build with
# 2.7 GB of packages for graphics processors; `TORCH=default make setup` asks for it. The attempt at PyTorch's index is
# short, for networks without a way to it.
TORCH ?= cpu
CPU_INDEX := https://download.pytorch.org/whl/cpu

# torch first: what asks for it later then finds it. --no-deps, because requirements.txt pins what torch depends on. Not
# compiled, which takes half a minute: Python does it for the part that is ever imported.
.venv/ready: requirements.txt pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "rni needs Python 3.11 or newer")'
	$(PYTHON) -m venv .venv
	@echo "1 of 2: torch, some 200 MB"
	@torch="$$(grep '^torch==' requirements.txt)"; install="$(BIN)/pip install --no-compile --disable-pip-version-check"; \
	if [ "$(TORCH)" = default ] || ! $$install --no-deps --retries 0 --timeout 10 --index-url $(CPU_INDEX) "$$torch"; then \
		echo "torch from pip's default index, on Linux with 2.7 GB for graphics processors"; \
		$$install "$$torch"; \
	fi
	@echo "2 of 2: all else, some 400 MB; a few minutes"
	$(BIN)/pip install --quiet --no-compile --disable-pip-version-check -r requirements.txt
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --editable .
	touch $@

# `rni` as a command
shell: setup
	PATH="$(CURDIR)/$(BIN):$$PATH" $${SHELL:-bash}

# in the order of the files: sorted by their number of tests, those with a few long ones would come last
test: setup
	$(BIN)/python -m pytest -n auto --dist loadfile --no-loadscope-reorder

test-slow: setup
	$(BIN)/python -m pytest -m slow

check: setup
	$(BIN)/ruff check --no-cache .
	$(BIN)/ruff format --no-cache --check .
	$(BIN)/pyright

reproduce: setup
	$(BIN)/rni reproduce

bench: setup
	$(BIN)/python -m bench

chaos: setup
	$(BIN)/python -m tests.chaos --out docs/chaos.md

# what builds the site and the release, beside what the package needs
.venv/docs: .venv/ready requirements-docs.txt
	$(BIN)/pip install --quiet --disable-pip-version-check -r requirements-docs.txt
	touch $@

# executed, warnings are errors, links between pages are checked
docs: .venv/docs
	$(BIN)/python -m sphinx -b html -j auto -W --keep-going docs site

# links to elsewhere, which need the network
links: .venv/docs
	$(BIN)/python -m sphinx -b linkcheck docs build/links

# small pictures of all figures, of 1000 neurons: about an hour on two slow cores
gallery: setup
	$(BIN)/rni reproduce --profile paper --out build/report
	$(BIN)/python docs/thumbnails.py build/report docs/gallery

# wheel (built from the sdist) and sdist, tried in clean environments
dist: .venv/docs
	rm -rf dist
	$(BIN)/python -m build --outdir dist .
	$(BIN)/twine check --strict dist/*
	$(BIN)/python -m tests.dist --extras dist/*.whl

# the same with the oldest versions that are allowed: torch comes with gigabytes for graphics processors then
dist-oldest: dist
	$(BIN)/python -m tests.dist --oldest dist/*.whl

# the same on the newest Python, or others: `make dist-newest NEWEST="python3.12 python3.13"`; gigabytes as well
NEWEST ?= python3.13
dist-newest: dist
	set -e; for each in $(NEWEST); do $(BIN)/python -m tests.dist --extras --python $$each dist/*.whl; done

# which small mistakes in the mathematics the tests see
mutants: setup
	$(BIN)/python -m tests.mutation

# the page of `rni explore`, from its sources; needs node, which users of the package do not
explorer:
	cd explorer && npm ci && npm run check && npm test && npm run build

clean:
	rm -rf .venv build dist *.egg-info report site docs/generated
