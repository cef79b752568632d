#!/usr/bin/env python3
"""Breaks one rule of the protocol at a time and shows what catches it: the simulation, by a seed
and an oracle, or, where the rest of the protocol makes up for the broken rule, a unit test of that core.

    tests/simulation/mutate.py [--only NAME] [--from NAME] [--check] [--seconds 20] [--compiler 'g++ -O1']

Each mutation replaces one piece of text, which may stand in any file of its folder; one that is not found exactly once
is an error, so the list stays true to the code. Only what depends on the changed file is compiled anew. Two of them break no shipped code but the simulated disk, whose rules the real storage keeps by
itself (chief/term, chief/checkpoint): they show that the oracles would see it. The table that it prints belongs into
README.md.
"""
import argparse
import hashlib
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
CORE = "worker/session/session_core"
CHIEF = "chief/core/"
# The worker's core and its parts, among the files of worker/session.
OF_SESSION = ("session_core", "boundary", "chief_link", "held_snapshots", "kept_copies", "unsent_reports")

# name, rule, a file of the folder, text, replacement
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
     "if (phase_ == Phase::kStopping || phase_ == Phase::kReturning) return link_.HelloWaits();", ""),
    ("tell_before_welcome", "14: nothing under the old term between Hello and Welcome", CORE + ".cc",
     "!(link_.Is(Link::kGreeting) && cannot_wait)", "!link_.Is(Link::kGreeting)"),
    ("no_generation_fence", "10: requests are fenced by generation", CORE + "_chief.cc",
     "fence.generation == membership_.generation() && phase_ != Phase::kStopping", "phase_ != Phase::kStopping"),
    ("follow_old_chief", "10, 13: a replaced chief is not followed", CORE + "_chief.cc",
     "if (fence.term < link_.highest_term()) {", "if (false) {"),
    ("keep_any_state", "9: who keeps its state holds exactly it", CORE + "_generation.cc",
     "  if (!receives && (!has_state_ || !MayBecome(form.lineage) || position_ != form.position)) {",
     "  if (false) {"),
    ("void_state_kept", "9: a half-received state is none", CORE + "_generation.cc",
     "  if (event.state_void) has_state_ = false;\n  stop_limit_", "  stop_limit_"),
    ("save_mid_evaluation", "2: evaluate before saving", "worker/session/boundary.cc",
     "    work.evaluate = true;\n    return work;", "    work.evaluate = true;"),
    ("restore_too_early", "14: no restore while somebody may hold newer", CHIEF + "waiting_step.cc",
     "if (may_hold) return true;", "if (may_hold) break;"),
    ("trust_the_shares", "20: recompute the digest before publishing", CHIEF + "checkpoint_tracker.cc",
     "if (event.recomputed != save->id.digest) {", "if (false) {"),
    ("store_half", "9: a manifest is stored when every share is", CHIEF + "checkpoint_tracker.cc",
     "std::all_of(save.shares.begin(), save.shares.end(), [](const Share& share) { return share.stored; });",
     "std::any_of(save.shares.begin(), save.shares.end(), [](const Share& share) { return share.stored; });"),
    ("rest_before_ack", "8: who has not acknowledged is not at rest", CHIEF + "generation_life.cc",
     "  worker.verdict_sent = true;",
     "  worker.verdict_sent = true;\n  if (worker.claimed.has_value()) { worker.held = worker.claimed; "
     "worker.busy = Generation(); }"),
    ("forget_term_fence", "10: messages carry the term", CHIEF + "coordinator_messages.cc",
     "} else if (event.fence.term != term_) {", "} else if (false) {"),
    ("old_chief_writes", "13: of the simulated disk: neither staging nor the list of the newer chief fences",
     "tests/simulation/model_disk.cc",
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
    ("restore_without_ledger", "27: a restore brings what was evaluated", CHIEF + "beginning.cc",
     "    form.ledger = saves.published_ledger();\n", ""),
    ("sums_of_two", "27: an evaluation counts its own slices", CORE + "_boundary.cc", "  progress_.sums = {};\n", ""),
    ("best_not_awaited", "27: members wait for the best state", "worker/session/boundary.cc",
     "work.save = SnapshotCause::kBest;", "work.save = SnapshotCause::kDue;"),
    ("best_forgets_chief", "27: they wait also for a chief that is away", CORE + "_chief.cc",
     "const bool may_go_on = hold_ == Hold::kEarlierSave || hold_ == Hold::kSave || hold_ == Hold::kMeeting;",
     "const bool may_go_on = hold_ != Hold::kFinished;"),
    ("best_once_only", "27: who stands at the best state anew waits anew", "worker/session/boundary.cc",
     "} else if (rule.keep_best && !standing.published &&", "} else if (rule.keep_best && !fresh &&"),
    ("published_by_name", "20: a published state is its step and its bits", CHIEF + "checkpoint_tracker.h",
     "return snapshot.step == published_.step && snapshot.digest == published_.digest;",
     "return snapshot == published_;"),
    ("full_disk_ends", "a storage that refuses for a while is waited for", CHIEF + "checkpoint_tracker.cc",
     "  if (!event.may_pass) {", "  if (true) {"),
    ("losses_spend", "15: a loss spends nothing", CHIEF + "coordinator_sessions.cc",
     "    gone_.Count(name, change, reason);\n",
     "    gone_.Count(name, change, reason);\n    CountFailure(host, reason, member);\n"),
    ("hang_for_ever", "17: who makes no progress is given up", CHIEF + "life_signs.cc",
     "now - worker.progressed <= no_progress_.Of(worker.name())", "true"),
    ("differences_unseen", "22: states that differ are found", CHIEF + "coordinator_audit.cc",
     "  if (agrees) return;", "  return;"),
    ("anybody_named", "22: only a minority is named", CHIEF + "coordinator_audit.cc",
     "  for (const Incarnation& id : audit_.Minority()) {\n",
     "  for (const Incarnation& id : life_.current().Ids()) {\n"),
    ("back_to_the_newest", "22: only an audited state is gone back to (of the simulated disk)",
     "tests/simulation/model_disk.cc", "<= up_to && !it->second.set_aside && it->second.audited) return &it->second;",
     "<= up_to && !it->second.set_aside) return &it->second;"),
    ("drained_come_back", "who is drained is turned away", CHIEF + "coordinator_sessions.cc",
     "  if (away.has_value()) {", "  if (false) {"),
    ("unsynced_commit", "of the simulated disk: fsync before Published", "tests/simulation/model_disk.cc",
     "if (found != checkpoints_.end()) found->second.synced = true;", "(void)found;"),
    ("taken_over_is_audited", "22: a state counts as audited only for the generation that computed it",
     CHIEF + "snapshot_terms.cc", "(!formed_here || step > generation.begin.step)", "true"),
    ("difference_forgotten", "22: a difference that an earlier chief found is not forgotten",
     CHIEF + "coordinator_audit.cc", "if (!hello.differ.has_value() || ", "if (true || "),
    ("copy_of_after", "22: no copy of a step after the difference is gone back to", CHIEF + "coordinator_audit.cc",
     " && step <= repair_.found_at() &&\n", " &&\n"),
    ("no_audit_floor", "22: what all had compared stays while a worker that was there may come back",
     CHIEF + "coordinator.cc", "history_, floor_.step()};", "history_, AuditFloor::kNone};"),
    ("forget_the_lost", "22: what all had compared stays, also for whom an earlier chief lost",
     CHIEF + "coordinator.cc", "if (term_ > 1) floor_.Begin(now);", ""),
    ("any_copy", "22: only a state that all compared is gone back to", CHIEF + "coordinator_audit.cc",
     "if (audited == nullptr || audited->digest != kept.digest || !lies_between) continue;\n"
     "      if (history_.Includes(kept.lineage, step)) offers.push_back({worker->id(), kept, audited->trained_for});",
     "if (!lies_between) continue;\n"
     "      offers.push_back({worker->id(), kept, audited == nullptr ? absl::Duration() : audited->trained_for});"),
    ("late_digest_awaited", "22: once the way back is ordered, nothing is awaited", CHIEF + "coordinator_audit.cc",
     "comes && repair_.Gathers() &&", "comes &&"),
    ("every_loss_counts", "6: a stop waits for those alone that may hold what nobody saved", CHIEF + "departures.h",
     "if (holds && !ended) holder_lost_ = now;", "holder_lost_ = now;"),
    ("gone_still_holds", "19: whose snapshot is gone is no holder", CHIEF + "checkpoint_tracker.cc",
     "  if (message.gone) save->holders.erase(holder);\n", ""),
    ("queue_is_full", "19: a newer save finds room", CHIEF + "checkpoint_tracker.cc",
     "if (found == saves_.end()) found = first(", "if (false) found = first("),
]


# What stands in for the chief's JobStore, whose libraries are not built here: these schedules run on the model.
NO_JOB_STORE = """#include "tests/simulation/job_store/make_real_disk.h"
namespace lockstep::simulation {
std::unique_ptr<Disk> MakeRealDisk(Cluster*, uint64_t) { return nullptr; }
}  // namespace lockstep::simulation
"""

# Both cores are built from these as well.
SHARED = ("common/protocol/evaluation.cc", "common/protocol/member_list.cc", "common/digest/sha256.cc")


# ---- building -----------------------------------------------------------------------------------------------------

def wanted(path):
    """What the simulation is built from; tests apart."""
    if path.name.endswith("_test.cc"):
        return False
    return path.parent.name != "session" or path.name.startswith(OF_SESSION)


def sources_of_simulation():
    sources = [path for folder in ("chief/core", "worker/session", "tests/simulation", "common/status")
               for path in sorted((ROOT / folder).glob("*.cc")) if wanted(path)]
    return sources + [ROOT / path for path in SHARED]


def sources_of_unit_tests(folder):
    """All tests of one core, and the core itself."""
    own = OF_SESSION + ("session_parts",) if folder == "worker/session" else ("",)
    sources = [path for path in sorted((ROOT / folder).glob("*.cc")) if path.name.startswith(own)]
    sources += [path for path in sorted((ROOT / "common/status").glob("*.cc")) if wanted(path)]
    return sources + [ROOT / path for path in SHARED + ("bazel/catch_main.cc",)]


def dependencies(obj):
    """The files that an object was made from, as the compiler listed them; none where it was never made."""
    listed = obj.with_suffix(".d")
    if not obj.exists() or not listed.exists():
        return None
    words = listed.read_text().replace("\\\n", " ").split()[1:]
    return [ROOT / word for word in words if not word.startswith("/") and not word.endswith(":")]


def compile_one(source, obj, args, overlay=None):
    """`overlay` holds the changed file at its path and hides the one of the tree."""
    obj.parent.mkdir(parents=True, exist_ok=True)
    include = ["-I", str(overlay)] if overlay else []
    subprocess.check_call(args.compiler.split() + ["-std=c++20", "-ffp-contract=off", *include, "-I.", "-MMD", "-c",
                                                   str(source), "-o", str(obj)], cwd=ROOT)


def build(mutated, overlay, sources, out, args, more=()):
    """Links `out` from the cached objects of the tree, from new ones of what depends on the changed file, and `more`."""
    objects = [str(obj) for obj in more]
    for source in sources:
        relative = source.relative_to(ROOT)
        obj = args.cache / relative.with_suffix(".o")
        needs = dependencies(obj)
        if needs is None or any(not need.exists() or need.stat().st_mtime > obj.stat().st_mtime for need in needs):
            compile_one(relative, obj, args)
            needs = dependencies(obj)
        if ROOT / mutated in needs:
            changed = overlay / relative.with_suffix(".o")
            compile_one(overlay / relative if str(relative) == mutated else relative, changed, args, overlay)
            obj = changed
        objects.append(str(obj))
    libs = subprocess.check_output(["pkg-config", "--libs", "absl_strings", "absl_str_format", "absl_status",
                                    "absl_statusor", "absl_time", "absl_base"], text=True).split()
    subprocess.check_call(args.compiler.split() + objects + ["-o", str(out)] + libs + ["-lcrypto", "-lpthread"])


# ---- what catches it ------------------------------------------------------------------------------------------------

def simulate(mutated, overlay, args):
    out = overlay / "simulation_main"
    stub = overlay / "no_job_store.cc"
    stub.write_text(NO_JOB_STORE)
    compile_one(stub, stub.with_suffix(".o"), args)
    build(mutated, overlay, sources_of_simulation(), out, args, [stub.with_suffix(".o")])
    for profile, seconds in (([], args.seconds), (["--classic"], args.seconds / 2)):
        run = subprocess.run([str(out), *profile, "--store", "model", "--seconds", str(seconds), "--max-failures", "1"], text=True,
                             capture_output=True, timeout=args.seconds * 20 + 60)
        failed = [line for line in run.stdout.splitlines() if line.startswith("FAILED seed")]
        if failed:
            return " ".join([*profile, failed[0][len("FAILED "):]])
        if run.returncode < 0:
            return f"aborted: {run.stderr.strip()[-200:]}"
    return None


def unit_tests(mutated, overlay, args):
    folder = str(pathlib.Path(mutated).parent)
    if folder not in ("worker/session", "chief/core"):
        return None
    out = overlay / "unit_tests"
    build(mutated, overlay, sources_of_unit_tests(folder), out, args)
    run = subprocess.run([str(out), "-a"], text=True, capture_output=True, timeout=300)
    if run.returncode == 0:
        return None
    lines = run.stdout.splitlines()
    ruler = next((i for i, line in enumerate(lines) if line.startswith("-----")), None)
    return "unit test '" + (lines[ruler + 1] if ruler is not None else "aborted") + "'"


def find(name, file, old):
    """The file of that folder where the text stands: pieces of a core move between its files."""
    folder = (ROOT / file).parent
    found = [path for path in sorted(folder.iterdir())
             if path.suffix in (".cc", ".h") and not path.name.endswith("_test.cc")
             for _ in range(path.read_text().count(old))]
    if len(found) != 1:
        sys.exit(f"{name}: the text to replace stands {len(found)} times in {folder}")
    return found[0]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="the mutations whose names contain this")
    parser.add_argument("--from", dest="first", default="", help="begin with the mutation of this name")
    parser.add_argument("--check", action="store_true", help="only see that every text stands there once")
    parser.add_argument("--no-unit-tests", action="store_true", help="leave out the tests of the core, which build long")
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--compiler", default="g++ -O1")
    checkout = hashlib.sha256(str(ROOT).encode()).hexdigest()[:8]
    parser.add_argument("--cache", type=pathlib.Path,
                        default=pathlib.Path(tempfile.gettempdir()) / f"lockstep_mutate-{checkout}")
    args = parser.parse_args()
    names = [mutation[0] for mutation in MUTATIONS]
    if args.first and args.first not in names:
        sys.exit(f"--from: there is no mutation {args.first}")
    chosen = [mutation for mutation in MUTATIONS[names.index(args.first) if args.first else 0:]
              if args.only in mutation[0]]
    places = [find(name, file, old) for name, rule, file, old, new in chosen]
    if args.check:
        return 0
    missed = 0
    for (name, rule, _, old, new), place in zip(chosen, places):
        with tempfile.TemporaryDirectory() as folder:
            overlay = pathlib.Path(folder)
            mutated = place.relative_to(ROOT)
            (overlay / mutated).parent.mkdir(parents=True)
            (overlay / mutated).write_text(place.read_text().replace(old, new))
            caught = simulate(str(mutated), overlay, args)
            if caught is None and not args.no_unit_tests:
                caught = unit_tests(str(mutated), overlay, args)
        missed += caught is None
        print(f"| {name} | {rule} | {caught or 'NOT CAUGHT'} |", flush=True)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
