# The whole project in six words. Everything else: cargo xtask --help

SECONDS_OF_DEMO = $(or $(DEMO_SECONDS),0)
# Built in one call with the binary, so that both use the same dependencies.
XTASK = $(or $(CARGO_TARGET_DIR),target)/debug/xtask

.PHONY: build demo test test-long bench pictures

build:                  ## the binary: target/debug/waggle
	@scripts/setup
	cargo build --package waggle --package xtask

demo: build             ## watch a real server; DEMO_SECONDS=20 ends by itself
	@$(XTASK) demo --seconds $(SECONDS_OF_DEMO)

test: build             ## the gate: every kind of truth
	@$(XTASK) test

test-long: build        ## what measures, guards, floods, boots other kernels
	@$(XTASK) test --long

bench:                  ## the price of the tap, on this machine
	@scripts/setup
	@cargo xtask bench tap

pictures: build         ## the pictures of the documents, from a real run
	@cargo xtask pictures
