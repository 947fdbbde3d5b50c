# The one definition of every check and of every thing to run: people and CI call the same targets.
SHELL := bash
.DEFAULT_GOAL := help
.PHONY: help setup demo demo-spark java-if-possible demo-live test test-all oldest connect check docs wheel try bench experiments nights signals damage house waiting clean lock

BIN := .venv/bin
# What needs Spark runs below .ci/java, which finds Java wherever it is.
XMLSTREAM := .ci/java $(BIN)/xmlstream
PYTEST := .ci/java $(BIN)/pytest
DEMO := out/demo
TESTS_AT_ONCE := 3
TESTS = $(PYTEST) --numprocesses=$(TESTS_AT_ONCE) --dist=loadfile --no-loadscope-reorder
# As written: below MAX a union need not look for what is equal, and the figure would have no union to show.
DEMO_RUN = $(1) run $(DEMO)/$(2).sql -D SENSORS=$(DEMO)/$(3) --engine $(4) --row-tag hottest --as-written \
    -o '$(DEMO)/$(5)' --metrics '$(DEMO)/$(5).jsonl'
# Queries of data/, kills, sinks and the cluster. Older versions of PySpark leave sockets open.
OLDEST := -W ignore::pytest.PytestUnraisableExceptionWarning $(addprefix tests/xmlstream/, \
    builder/test_query.py cli/test_cluster.py queries/test_warehouse.py runtime/loop/test_slice_loop.py \
    runtime/checkpoint/test_restart.py sink/test_round_trip.py sql/spark sql/test_translation.py) tests/sources/xml/spark
# Containers often say that Python keeps no byte code: then each worker would compile every test and module anew.
export PYTHONDONTWRITEBYTECODE :=

help: ## print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: .venv/prepared ## make .venv with the locked dependencies, find or install Java, make starts faster
	@.ci/setup java

.venv/installed: pyproject.toml requirements.lock .ci/setup
	@.ci/setup python
	@touch $@

.venv/prepared: .venv/installed
	@.ci/setup java
	@.ci/setup start
	@touch $@

demo: java-if-possible .venv/installed ## run the warehouse query over a million items on both engines, and draw the state it keeps
	@rm -rf $(DEMO) && mkdir -p $(DEMO)
	@echo "Two sensors, 8,400 hours, a report a minute; one stream closes its hours with punctuations, one does not."
	@$(BIN)/xmlstream generate sensors --hours 8400 --seed 7 --out $(DEMO)/punctuated >/dev/null
	@$(BIN)/xmlstream generate sensors --hours 8400 --seed 7 --punctuations-per-hour 0 --out $(DEMO)/plain >/dev/null
	@# In slices of some MB, as a stream comes, so that the figure has points.
	@sed "s/schemes 'hour'/&, maxBytesPerSlice '4m'/" data/warehouse.sql > $(DEMO)/warehouse.sql
	@sed "s/schemes 'hour'/maxBytesPerSlice '4m'/" data/warehouse.sql > $(DEMO)/plain.sql
	$(call DEMO_RUN,$(BIN)/xmlstream,warehouse,punctuated,duckdb,in process)
	$(call DEMO_RUN,$(BIN)/xmlstream,plain,plain,duckdb,in process without punctuations)
	@$(BIN)/xmlstream cat "$(DEMO)/in process" > "$(DEMO)/in process.xml"
	@grep '^<hottest>' "$(DEMO)/in process.xml" | sort -t '>' -k 5n | head -n 3
	@if .ci/java >/dev/null 2>&1; then $(MAKE) --no-print-directory demo-spark; \
	    else echo "… of Spark, which is the default, nothing: it needs Java 17 (above is what installs it)"; fi
	@$(BIN)/python -m tests.experiments.state_figure $(DEMO)/state.png $(DEMO)/*.jsonl

# Part of `make demo`.
demo-spark:
	$(call DEMO_RUN,$(XMLSTREAM),warehouse,punctuated,spark,Spark)
	@$(BIN)/xmlstream cat $(DEMO)/Spark > $(DEMO)/Spark.xml
	@# Within a slice the order of tuples is free.
	@diff -q <(sort "$(DEMO)/in process.xml") <(sort $(DEMO)/Spark.xml)
	@echo "… the same on both engines: $(DEMO)/Spark.xml"

java-if-possible:
	@.ci/setup java || echo "… without it all but Spark's part is shown" >&2

demo-live: setup ## sensors over MQTT (or HTTP), a receiver, the query that follows them, its table; Ctrl-C ends all
	@.ci/setup broker
	@.ci/demo-live $(SECONDS_LONG)

test: setup ## run the tests of every claim, those without Spark first (minutes)
	$(TESTS) -m "not rest"

test-all: setup ## run the rest of the tests: second engines, servers, builds, more cases (minutes)
	@.ci/setup tested
	$(TESTS) -m rest

oldest: setup ## run a fixed part of the tests on the oldest PySpark, in .venv/oldest
	@.ci/setup oldest
	.ci/java .venv/oldest/bin/python -m pytest $(OLDEST)

connect: setup ## run the queries of data/ over Spark Connect, in .venv/connect (minutes)
	@.ci/setup connect
	.ci/java .venv/connect/bin/python -m pytest tests/xmlstream/session/test_spark_connect.py

check: .venv/installed ## format, rules, types, floors, plain words
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m tests.tools.weight --check

docs: .venv/installed ## build the site of the documentation in out/docs, its links checked (seconds)
	$(BIN)/python -m tests.tools.site

wheel: .venv/installed ## build what is published in dist; TAG=v1.2.3 must be its version
	@.ci/wheel build $(TAG)

try: wheel ## install the wheel into an empty environment, and run the README's examples there (minutes)
	@.ci/wheel try

bench: setup ## measure beside other contenders; KEEP=1 makes the numbers those to compare with (minutes)
	$(PYTEST) --capture=no --durations=5 tests/benchmarks/*.py
	$(if $(KEEP),cp out/bench/bench.json tests/benchmarks/last.json)

experiments: setup ## reproduce Fig. 2 of Tucker et al. 2003 (minutes)
	$(PYTEST) --capture=no tests/experiments/*.py

nights: setup ## search for HOURS=2 with fresh seeds what tests have few examples of; keeps what fails in out/nights
	@.ci/setup tested
	.ci/java $(BIN)/python -m tests.campaigns.nights --hours $(or $(HOURS),2) $(SEARCHES)

signals: setup ## interrupt runs at every moment in every way, and look at what is left (an hour)
	.ci/java $(BIN)/python -m tests.campaigns.signals

damage: setup ## damage each file of a checkpoint in turn, and look at what the next run says (minutes)
	.ci/java $(BIN)/python -m tests.campaigns.damage

house: .venv/installed ## draw the pictures of the documentation anew: the architecture's, from the floors in pyproject.toml
	$(BIN)/python -m tests.tools.house
	$(BIN)/python -m tests.tools.refused

waiting: setup ## draw the pictures of the monitor's page in the README anew (a minute, with a browser)
	@.ci/setup tested
	.ci/java $(BIN)/python -m tests.tools.waiting

clean: ## remove everything that make and the tools wrote, .venv too
	rm -rf .venv out build dist *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	rm -rf .grimp_cache spark-warehouse metastore_db derby.log artifacts
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

lock: .venv/installed ## resolve requirements.lock anew from pyproject.toml
	$(BIN)/uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes \
	    --custom-compile-command "make lock" --group dev --extra all pyproject.toml -o requirements.lock
