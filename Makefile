# The project's habits. `make run` and `make test` need Go and make alone.

GO ?= go
STATICCHECK = honnef.co/go/tools/cmd/staticcheck@v0.8.2
# A count: when a time is over, Go 1.26 may fail with "context deadline exceeded"
# (https://go.dev/issue/75804), and a busy machine tries next to nothing in it.
FUZZTIME ?= 10000x
COUNT ?= 20
# What a package's tests may take before they count as hanging, on a busy machine.
TIMEOUT ?= 30m

# The race detector needs cgo, and so a C compiler.
CC_FOUND := $(shell command -v $$($(GO) env CC) 2>/dev/null)
RACE := $(if $(CC_FOUND),-race,)

.PHONY: run build test race lint cover fuzz stress bench csrc cuda-sdk cuda.env cuda cuda-test kernels simcuda simcuda-test gpu-bundle native native-test install-native raft

run: build
	build/weir einsum 'asb,btc,cud->astud' examples/data/left.npy examples/data/middle.npy examples/data/right.npy -o build/theta.npy
	build/weir ising

build:
	CGO_ENABLED=0 $(GO) build -o build/weir ./cmd/weir

test:
	$(GO) test $(RACE) -timeout $(TIMEOUT) ./...

race:
	CGO_ENABLED=1 $(GO) test -race -timeout $(TIMEOUT) ./...

lint:
	@unformatted=$$(gofmt -l $$(git ls-files '*.go')); test -z "$$unformatted" || { echo "not gofmt-ed: $$unformatted"; exit 1; }
	$(GO) vet ./...
	$(GO) run $(STATICCHECK) ./...
	$(GO) test ./internal/lint

cover:
	$(GO) test -coverpkg=./... -coverprofile=build/cover.out ./... && $(GO) tool cover -func=build/cover.out | tail -n 1

# Every fuzz target of every package, FUZZTIME each.
fuzz:
	@set -e; for dir in $$($(GO) list -f '{{.Dir}}' ./...); do \
		for target in $$(grep -hoE '^func Fuzz[A-Za-z0-9_]+' $$dir/*_test.go 2>/dev/null | sed 's/^func //'); do \
			echo "$$target in $$dir"; $(GO) test -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) $$dir; \
		done; \
	done

# The concurrent packages, many times over.
stress:
	$(GO) test $(RACE) -timeout $(TIMEOUT) -count $(COUNT) ./scheduler ./internal/lease ./stream ./provider/... ./buffer ./runtime ./internal/driver/... ./tensor

bench: build
	build/weir bench

# Headers and archives of Weir's own that a build with the cuda tag needs. It
# prints their folder; build/weir env makes the same one.
csrc:
	$(GO) run ./csrc/buildkit -o build/csrc -arch "$$($(GO) env GOARCH)" -cc "$$($(GO) env CC)"

# NVIDIA's headers, nvcc and libraries, in a cache outside the checkout.
cuda-sdk:
	csrc/sdk/install.sh

# The settings of builds with the cuda tag. weir env says what is missing.
cuda.env: build
	@build/weir env >build/cuda.env
	@grep -q '^export CGO_CFLAGS=' build/cuda.env || { grep -A 99 '^# no builds with -tags cuda' build/cuda.env; exit 1; }

# The command with the CUDA devices.
cuda: cuda.env
	. ./build/cuda.env && $(GO) build -tags cuda -o build/weir-cuda ./cmd/weir

# The tests with the cuda tag of what depends on it: on the simulated driver, under the
# race detector but for what computes much and shares little; then with no driver at
# all. -count=1, since Go's cache of results does not see what C code reads.
CUDA_NO_RACE = bench|cmd|csrc|internal/ising|tensor/grad
cuda-test: cuda.env simcuda
	. ./build/cuda.env && \
	tests=$$($(GO) list -tags cuda -test -f '{{if .ForTest}}{{.ForTest}} {{join .Deps " "}}{{end}}' ./...) && \
	tests=$$(echo "$$tests" | awk '/internal\/driver\/cuda( |$$)/{print $$1}' | sort -u) && \
	export WEIR_CUDA_LIBRARY_PATH=$(CURDIR)/build/simcuda && \
	$(GO) test -tags cuda $(RACE) -timeout $(TIMEOUT) -count=1 $$(echo "$$tests" | grep -vE '/($(CUDA_NO_RACE))(/|$$)') && \
	$(GO) test -tags cuda -timeout $(TIMEOUT) -count=1 ./csrc/... ./internal/cudaenv $$(echo "$$tests" | grep -E '/($(CUDA_NO_RACE))(/|$$)')
	. ./build/cuda.env && unset WEIR_CUDA_LIBRARY_PATH && $(GO) test -tags cuda -count=1 ./runtime ./tensor ./provider/... ./cmd/...

# The GPU kernels, which are committed; a test says when they are out of date.
kernels:
	csrc/kernels/build.sh

# All that a GPU machine without Go needs, in build/gpu-bundle.tar.xz. There:
#   tar -xJf gpu-bundle.tar.xz && weir-gpu/run.sh results
gpu-bundle: cuda.env
	csrc/gpu/bundle.sh

# The simulated driver, cuBLAS and cuSOLVER, for tests without a GPU: a program
# built with the cuda tag finds them by WEIR_CUDA_LIBRARY_PATH=build/simcuda.
simcuda:
	$(MAKE) -C csrc/simcuda OUT=$(CURDIR)/build/simcuda

# Its own tests: plain, under the address and undefined-behaviour sanitizers, and
# under the thread sanitizer.
simcuda-test:
	$(MAKE) -C csrc/simcuda OUT=$(CURDIR)/build/simcuda test

# The native interface without CUDA, in build/native: libraftrkt, a library for
# tests, and the example's library built against the installed headers.
NATIVE = $(CURDIR)/build/native
native:
	cmake -S csrc/native -B $(NATIVE)/cmake >/dev/null
	+cmake --build $(NATIVE)/cmake --target raftrkt_host raftrkt_test
	cmake --install $(NATIVE)/cmake --prefix $(NATIVE)/prefix >/dev/null
	cmake -S examples/native-canary/cpp -B $(NATIVE)/canary -DCMAKE_PREFIX_PATH=$(NATIVE)/prefix >/dev/null
	+cmake --build $(NATIVE)/canary
	install $(NATIVE)/cmake/libraftrkt_host.so $(NATIVE)/cmake/libraftrkt_test.so $(NATIVE)/canary/libcanary.so $(NATIVE)

# Its tests, which need GoogleTest: plain, under the address and undefined-behaviour
# sanitizers, under the thread sanitizer; clang-tidy, where there is one.
native-test:
	cmake -S csrc/native -B $(NATIVE)/cmake -DRAFTRKT_TESTS=ON >/dev/null
	+cmake --build $(NATIVE)/cmake
	ctest --test-dir $(NATIVE)/cmake --output-on-failure -j2

# The headers, the library and the CMake package for others, under PREFIX.
PREFIX ?= /usr/local
install-native:
	cmake -S csrc/native -B $(NATIVE)/cmake >/dev/null
	+cmake --build $(NATIVE)/cmake --target raftrkt_host raftrkt_test
	cmake --install $(NATIVE)/cmake --prefix "$(PREFIX)"

# The native interface on RAFT, in build/raft; docs/cuda.md says what it needs.
raft: native
	+csrc/raft/build.sh
