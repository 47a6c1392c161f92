# Everything sets itself up: Python 3.11 or newer, make and git are all that must be there.
.DEFAULT_GOAL := help
.PHONY: help setup up demo test test-fast test-long bench lint lock protos postgres promtool tools chromium

bin := .venv/bin
# Tests of these marks need servers.
costly := broker or stack or postgres
# Rooms whose tests need nothing but their own process, and the house rules that are cheap: what runs after each edit.
pure := $(addprefix tests/,domain schemas log golden projections/folds house) \
	$(addprefix --ignore=tests/house/,test_style.py test_imports.py)

# pytest keeps what it made of the tests' asserts beside them, unless this is set: making it anew is two fifths of a
# collection. Every process that a test starts would compile its modules again.
test test-fast test-long: export PYTHONDONTWRITEBYTECODE :=

help: ## what can be made
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 12

setup: ## install everything, start nothing
	@sh ops/setup/environment.sh

up: setup ## everything on an embedded Kafka, on port 8000 or PORT=…; Ctrl-C stops it
	@exec $(bin)/placet up $(if $(PORT),--port $(PORT))

demo: setup ## agents on real tasks, decided by you; AUTO=1 decides by itself and ends
	@exec $(bin)/placet demo $(if $(filter-out 0,$(AUTO)),--auto)

test: setup postgres promtool tools chromium ## the whole suite
	@exec $(bin)/python -m tests.suite

test-fast: setup ## the pure rooms and cheap house rules, in a minute: after each edit
	@began=$$(date +%s); status=0; \
	$(bin)/pytest -q $(pure) -m "not long and not alone and not ($(costly))" --numprocesses logical --dist worksteal || status=$$?; \
	echo "test-fast took $$(($$(date +%s) - began)) s"; \
	exit $$status

test-long: setup postgres promtool tools chromium ## the suite with what takes minutes: SEEDS=10000 seeds of the simulation
	@PLACET_SEEDS=$(or $(SEEDS),10000) exec $(bin)/pytest

bench: setup ## measure against the floor, on this machine
	@exec $(bin)/placet bench

lint: setup ## style, types, import directions
	@$(bin)/ruff check
	@$(bin)/ruff format --check
	@$(bin)/mypy
	@$(bin)/lint-imports

protos: setup ## make the Python modules of the .proto files anew
	@.venv/bin/python -m grpc_tools.protoc -I . --python_out=. --pyi_out=. --grpc_python_out=. schemas/human_input/v1/human_input.proto

lock: setup ## write the lock files anew; UPGRADE=1 takes newer versions
	@UPGRADE=$(UPGRADE) sh ops/setup/lock.sh

postgres:
	@sh ops/setup/postgres.sh

tools: setup
	@sh ops/setup/tools.sh

promtool:
	@sh ops/setup/promtool.sh

chromium:
	@sh ops/setup/chromium.sh
