// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
/*
 * The maps that the programs of all probes share, without a program. User space makes them once,
 * and gives them to every program that it loads.
 */
#include "session.bpf.h"

char LICENSE[] SEC("license") = "GPL";

/* The skeleton generates a Rust type for what it sees in a section. */
struct identity _identity = {};
struct session _session = {};
struct ring _ring = {};
struct targets _targets = {};
