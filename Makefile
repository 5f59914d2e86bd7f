# The whole project in five words. Everything else: cargo xtask --help

SECONDS_OF_DEMO = $(or $(DEMO_SECONDS),0)

.PHONY: build demo test bench pictures

build:                  ## the binary: target/debug/waggle
	@scripts/setup
	cargo build --package waggle

demo: build             ## watch a real server; DEMO_SECONDS=20 ends by itself
	@cargo xtask demo --seconds $(SECONDS_OF_DEMO)

test:                   ## every layer, with its time
	@scripts/setup
	@cargo xtask test

bench:                  ## the price of the tap, on this machine
	@scripts/setup
	@cargo xtask bench tap

pictures: build         ## the pictures of the documents, from a real run
	@cargo xtask pictures
