#!/usr/bin/env python3
"""Breaks one rule of the protocol at a time in a copy of the tree and shows what catches it: the simulation, by a seed
and an oracle, or, where the rest of the protocol makes up for the broken rule, a unit test of that core.

    tests/simulation/mutate.py [--only NAME] [--seconds 20] [--compiler 'g++ -O1']

Each mutation replaces one piece of text in one file; a piece that is not found exactly once is an error, so the list
stays true to the code. Two of them break no shipped code but the simulated disk, whose rules the real storage keeps by
itself (chief/term, chief/checkpoint): they show that the oracles would see it. The table that it prints belongs into
README.md.
"""
import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
CORE = "worker/session/session_core"
CHIEF = "chief/core/"

# name, rule, file, text, replacement
MUTATIONS = [
    ("own_slot_only", "1: act on the reduced word alone", CORE + "_boundary.cc",
     "published_}, word)", "published_}, word.slots.empty() ? word : ControlWord{{MySlot()}})"),
    ("stop_at_command", "1: a command only changes the contribution", CORE + "_boundary.cc",
     "published_}, word);",
     "published_}, word);\n"
     "  if (MySlot().request(RequestKind::kForm) != 0) boundary_.form = true;"),
    ("lost_update", "5: an update that began counts", CORE + "_boundary.cc",
     "  position_ = Position{event.step, 0};",
     "  if (phase_ == Phase::kStopping) return;\n  position_ = Position{event.step, 0};"),
    ("hold_for_ever", "6: a hold ends when the chief is lost", CORE + "_chief.cc",
     "if (phase_ == Phase::kHolding && may_go_on) ResumeFromHold", "if (may_go_on && false) ResumeFromHold"),
    ("early_ack", "8: acknowledge after computing has stopped", CORE + "_generation.cc",
     "  verdicts_.push_back(fence.generation);", "  Acknowledge(fence.generation);"),
    ("early_hello", "8: Hello waits until computing has stopped", CORE + "_chief.cc",
     "  if (phase_ == Phase::kStopping) {\n    hello_waits_ = true;  // what",
     "  if (false) {\n    hello_waits_ = true;  // what"),
    ("tell_before_welcome", "14: nothing under the old term between Hello and Welcome", CORE + ".cc",
     "!(link_ == Link::kGreeting && cannot_wait)", "link_ != Link::kGreeting"),
    ("no_generation_fence", "10: requests are fenced by generation", CORE + "_chief.cc",
     "fence.generation == generation_ && phase_ != Phase::kStopping", "phase_ != Phase::kStopping"),
    ("follow_old_chief", "10, 13: a replaced chief is not followed", CORE + "_chief.cc",
     "if (fence.term < highest_term_) {", "if (false) {"),
    ("keep_any_state", "9: who keeps its state holds exactly it", CORE + "_generation.cc",
     "  if (!receives && (!has_state_ || !MayBecome(form.lineage) || position_ != form.position)) {",
     "  if (false) {"),
    ("void_state_kept", "9: a half-received state is none", CORE + "_generation.cc",
     "  if (event.state_void) has_state_ = false;\n  stop_limit_", "  stop_limit_"),
    ("save_mid_evaluation", "2: evaluate before saving", "worker/session/boundary.cc",
     "    work.evaluate = true;\n    return work;", "    work.evaluate = true;"),
    ("restore_too_early", "14: no restore while somebody may hold newer", CHIEF + "coordinator_waiting.cc",
     "if (may_hold) return;", "if (may_hold) break;"),
    ("trust_the_shares", "20: recompute the digest before publishing", CHIEF + "checkpoint_tracker.cc",
     "if (event.recomputed != save->id.digest) {", "if (false) {"),
    ("store_half", "9: a manifest is stored when every share is", CHIEF + "checkpoint_tracker.cc",
     "std::all_of(save.shares.begin(), save.shares.end(), [](const Share& share) { return share.stored; });",
     "std::any_of(save.shares.begin(), save.shares.end(), [](const Share& share) { return share.stored; });"),
    ("rest_before_ack", "8: who has not acknowledged is not at rest", CHIEF + "coordinator_generation.cc",
     "  worker.verdict_sent = true;",
     "  worker.verdict_sent = true;\n  if (worker.claimed.has_value()) { worker.held = worker.claimed; "
     "worker.busy = Generation(); }"),
    ("forget_term_fence", "10: messages carry the term", CHIEF + "coordinator.cc",
     "} else if (event.fence.term != term_) {", "} else if (false) {"),
    ("old_chief_writes", "13: of the simulated disk: neither staging nor the list of the newer chief fences",
     "tests/simulation/disk.cc",
     "  if (!HasStaging(term)) return PublishResult::kFenced;\n"
     "  const uint64_t step = manifest.snapshot.step;\n"
     "  const auto found = checkpoints_.find(step);\n"
     "  if (found != checkpoints_.end() && !found->second.set_aside &&\n"
     "      found->second.snapshot.digest == manifest.snapshot.digest) {\n"
     "    return PublishResult::kOk;\n"
     "  }\n"
     "  manifest.term = term;\n"
     "  // What an older term publishes after a newer one has made its list is on no list.\n"
     "  manifest.set_aside = term < newest_scan_;\n",
     "  const uint64_t step = manifest.snapshot.step;\n"
     "  const auto found = checkpoints_.find(step);\n"
     "  if (found != checkpoints_.end() && !found->second.set_aside &&\n"
     "      found->second.snapshot.digest == manifest.snapshot.digest) {\n"
     "    return PublishResult::kOk;\n"
     "  }\n"
     "  manifest.term = term;\n"
     "  // What an older term publishes after a newer one has made its list is on no list.\n"),
    ("ledger_stays_home", "27: what was evaluated travels with the state", CORE + "_generation.cc",
     "  progress_ = event.progress;\n", ""),
    ("restore_without_ledger", "27: a restore brings what was evaluated", CHIEF + "coordinator_waiting.cc",
     "    form.ledger = saves_.published_ledger();\n", ""),
    ("sums_of_two", "27: an evaluation counts its own slices", CORE + "_boundary.cc", "  progress_.sums = {};\n", ""),
    ("best_not_awaited", "27: members wait for the best state", "worker/session/boundary.cc",
     "work.save = SnapshotCause::kBest;", "work.save = SnapshotCause::kDue;"),
    ("best_forgets_chief", "27: they wait also for a chief that is away", CORE + "_chief.cc",
     "const bool may_go_on = hold_ == Hold::kSave || hold_ == Hold::kMeeting;",
     "const bool may_go_on = hold_ != Hold::kFinished;"),
    ("best_once_only", "27: who stands at the best state anew waits anew", "worker/session/boundary.cc",
     "} else if (rule.keep_best && !standing.published &&", "} else if (rule.keep_best && !fresh &&"),
    ("published_by_name", "20: a published state is its step and its bits", CHIEF + "checkpoint_tracker.h",
     "return snapshot.step == published_.step && snapshot.digest == published_.digest;",
     "return snapshot == published_;"),
    ("full_disk_ends", "a storage that refuses for a while is waited for", CHIEF + "checkpoint_tracker.cc",
     "  if (!event.may_pass) {", "  if (true) {"),
    ("losses_spend", "15: a loss spends nothing", CHIEF + "coordinator_failure.cc",
     "    gone_.Count(name, change, reason);\n",
     "    gone_.Count(name, change, reason);\n    SpendFailure(reason, member);\n"),
    ("unsynced_commit", "of the simulated disk: fsync before Published", "tests/simulation/disk.cc",
     "if (found != checkpoints_.end()) found->second.synced = true;", "(void)found;"),
]


def simulate(tree, mutated, args):
    out = tree / "simulation_main"
    sources = [path for folder in ("chief/core", "worker/session", "tests/simulation", "common/status")
               for path in sorted((tree / folder).glob("*.cc")) if wanted(path)]
    sources.append(tree / "common/protocol/evaluation.cc")
    build(tree, mutated, sources, out, args)
    run = subprocess.run([str(out), "--seconds", str(args.seconds), "--max-failures", "1"], text=True,
                         capture_output=True, timeout=args.seconds * 20 + 60)
    failed = [line for line in run.stdout.splitlines() if line.startswith("FAILED seed")]
    if failed:
        return failed[0][len("FAILED "):]
    return f"aborted: {run.stderr.strip()[-200:]}" if run.returncode < 0 else None


def unit_tests(tree, mutated, args):
    folder = str(pathlib.Path(mutated).parent)
    if folder not in ("worker/session", "chief/core"):
        return None
    own = ("session_core", "boundary") if folder == "worker/session" else ("",)
    sources = [path for path in sorted((tree / folder).glob("*.cc")) if path.name.startswith(own)]
    sources += [path for path in sorted((tree / "common/status").glob("*.cc")) if wanted(path)]
    sources += [tree / "common/protocol/evaluation.cc", tree / "bazel/catch_main.cc"]
    out = tree / "unit_tests"
    build(tree, mutated, sources, out, args)
    run = subprocess.run([str(out), "-a"], text=True, capture_output=True, timeout=300)
    if run.returncode == 0:
        return None
    lines = run.stdout.splitlines()
    ruler = next((i for i, line in enumerate(lines) if line.startswith("-----")), None)
    return "unit test '" + (lines[ruler + 1] if ruler is not None else "aborted") + "'"


def build(tree, mutated, sources, out, args):
    libs = subprocess.check_output(["pkg-config", "--libs", "absl_strings", "absl_str_format", "absl_status",
                                    "absl_statusor", "absl_time", "absl_base"], text=True).split()
    objects = []
    for source in sources:
        relative = os.path.relpath(source, tree)
        obj = args.cache / (relative.replace("/", "_") + ".o")
        if relative == mutated:
            obj = tree / "mutant.o"
        if not obj.exists() or (relative != mutated and
                                obj.stat().st_mtime < max(newest_header(), (ROOT / relative).stat().st_mtime)):
            subprocess.check_call(args.compiler.split() + ["-std=c++20", "-ffp-contract=off", "-I", str(tree), "-c",
                                                           str(source), "-o", str(obj)])
        objects.append(str(obj))
    subprocess.check_call(args.compiler.split() + objects + ["-o", str(out)] + libs)


def wanted(path):
    if path.name.endswith("_test.cc"):
        return False
    return path.parent.name != "session" or path.name.startswith(("session_core", "boundary"))


def newest_header():
    return max(path.stat().st_mtime for folder in ("chief/core", "worker/session", "tests/simulation",
                                                   "common/protocol") for path in (ROOT / folder).glob("*.h"))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="")
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--compiler", default="g++ -O1")
    parser.add_argument("--cache", type=pathlib.Path, default=pathlib.Path(tempfile.gettempdir()) / "lockstep_mutate")
    args = parser.parse_args()
    args.cache.mkdir(parents=True, exist_ok=True)
    missed = 0
    for name, rule, file, old, new in MUTATIONS:
        if args.only and args.only not in name:
            continue
        text = (ROOT / file).read_text()
        if text.count(old) != 1:
            sys.exit(f"{name}: the text to replace stands {text.count(old)} times in {file}")
        with tempfile.TemporaryDirectory() as folder:
            tree = pathlib.Path(folder)
            for part in ("chief/core", "common/math", "common/protocol", "common/status", "worker/session",
                         "tests/simulation", "bazel"):
                shutil.copytree(ROOT / part, tree / part)
            (tree / file).write_text(text.replace(old, new))
            caught = simulate(tree, file, args) or unit_tests(tree, file, args)
        missed += caught is None
        print(f"| {name} | {rule} | {caught or 'NOT CAUGHT'} |", flush=True)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
