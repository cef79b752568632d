#include "worker/account/rates.h"

#include <algorithm>

namespace lockstep::worker {
namespace {

// Measured means docs/benchmarks.md, "Where the time of a step goes on a GPU": one H100, cuBLASLt 13.1, cuDNN 9.19.
constexpr RateFacts kFacts[kRates] = {
    {"products", 0.68, 0.53, 0.75, 0.75,
     "measured: 370 to 670 of 989 TFLOP/s; reachable is the best, today the middle"},
    {"products, rows off 16 bytes", 0.17, 0.145, 0.75, 0.75, "measured: 119 to 167 of 989 TFLOP/s, rows of 50257"},
    {"convolutions", 0.53, 0.28, 0.75, 0.44,
     "measured: 15.3 ms of ResNet-50's step, both shares fitted; reachable assumed"},
    {"products and convolutions in float32", 0.8, 0.8, 0.75, 0.75, "assumed"},
    {"attention", 0.23, 0.23, 0.75, 0.75, "measured: 231 of 989 TFLOP/s of cuDNN's, heads of 64"},
    {"gradient of attention", 0.155, 0.155, 0.75, 0.75, "measured: 153 of 989 TFLOP/s of cuDNN's that repeats"},
    {"own products", 0.28, 0.23, 0.75, 0.43, "measured: 12 and 19 of 67 TFLOP/s of own attention in float32"},
    {"layer normalisation", 0, 0, 0.75, 0.105, "measured: 336 and 371 of 3,350 GB/s; reachable as sums"},
    {"batch normalisation", 0, 0, 0.75, 0.24, "measured: 700 to 890 of 3,350 GB/s; reachable as sums"},
    {"loss", 0, 0, 0.75, 0.43, "measured: 1,370 and 1,550 of 3,350 GB/s; reachable as sums"},
    {"GELU", 0, 0, 0.75, 0.55, "measured: 1,620 and 2,090 of 3,350 GB/s; reachable as sums"},
    {"casts", 0, 0, 0.75, 0.52, "measured: 1,749 of 3,350 GB/s; reachable as sums"},
    {"sums, Relu, copies", 0, 0, 0.75, 0.72, "measured: 2,300 to 2,500 of 3,350 GB/s"},
    {"changes of layout", 0, 0, 0.75, 0.08, "measured: 270 of 3,350 GB/s; reachable as sums"},
    {"arithmetic of the step", 0, 0, 0.75, 0.69, "measured: AdamW of 124 million values in 1.5 ms, 2,320 GB/s"},
    {"copies from and to the host", 0, 0, 0.8, 0.8, "assumed"},
    {"all else", 0, 0, 0.75, 0.43, "not measured; as the loss"},
};

// Where the rates were measured.
constexpr double kMeasuredMemory = 3350;
constexpr double kMeasuredFloats = 66.9;

// A kernel that used less than half of the memory's rate waits for its instructions: more memory makes it no faster.
double BytesPerSecond(const RateFacts& facts, const Machine& machine, Level level) {
  if (level == Level::kPeak) return machine.memory_gbs * 1e9;
  const double share = level == Level::kToday ? facts.today_bytes : facts.reachable_bytes;
  if (share >= 0.5) return share * machine.memory_gbs * 1e9;
  return share * kMeasuredMemory * machine.fp32_tflops / kMeasuredFloats * 1e9;
}

}  // namespace

const RateFacts& FactsOf(Rate rate) { return kFacts[static_cast<size_t>(rate)]; }

Overheads OverheadsAt(Level level) {
  if (level == Level::kPeak) return {.links = 1};
  return {.in_graph_us = 1, .launch_us = 2, .call_us = 3, .gate_us = 20, .collective_us = 20, .links = 0.8};
}

const char* BoundName(Bound bound) {
  switch (bound) {
    case Bound::kMemory:
      return "memory";
    case Bound::kMatrixUnits:
      return "matrix units";
    case Bound::kFloatUnits:
      return "float32 units";
    case Bound::kBus:
      return "bus";
    case Bound::kLaunch:
      return "launches";
  }
  return "";
}

Price PriceOf(const Work& work, const Machine& machine, Level level) {
  const RateFacts& facts = FactsOf(work.rate);
  if (work.rate == Rate::kHostCopy) {
    const double share = level == Level::kPeak ? 1 : facts.reachable_bytes;
    return {static_cast<double>(work.bytes) / (share * machine.bus_gbs * 1e9) * 1e3, Bound::kBus};
  }
  const double memory = static_cast<double>(work.bytes) / BytesPerSecond(facts, machine, level);
  double share = 1;
  if (level != Level::kPeak) share = level == Level::kToday ? facts.today_operations : facts.reachable_operations;
  const double units = work.operations == 0
                           ? 0
                           : static_cast<double>(work.operations) / (share * machine.operations_per_second(work.units));
  if (units > memory) return {units * 1e3, work.units == Units::kF32 ? Bound::kFloatUnits : Bound::kMatrixUnits};
  return {memory * 1e3, Bound::kMemory};
}

int64_t ReductionBytes(int64_t elements, bool exact, int workers) {
  // Integers are scattered as they are summed, floats gathered; native sums do both with floats.
  const int64_t each = exact ? int64_t{sizeof(int64_t) + sizeof(float)} : int64_t{2 * sizeof(float)};
  return elements * each / workers * (workers - 1);
}

double ReductionMs(int64_t elements, bool exact, int workers, const Machine& machine, Level level) {
  if (workers < 2) return 0;
  const Overheads overheads = OverheadsAt(level);
  const double link = (workers <= kGpusOfNode ? machine.link_gbs : machine.network_gbs) * 1e9 * overheads.links;
  const double wire = static_cast<double>(ReductionBytes(elements, exact, workers)) / link;
  const Work conversion{.rate = Rate::kUpdate,
                        .bytes = exact ? elements / workers * int64_t{sizeof(int64_t) + sizeof(float)} : 0};
  const int calls = exact ? 2 : 1;
  return wire * 1e3 + PriceOf(conversion, machine, level).ms + calls * overheads.collective_us * 1e-3;
}

}  // namespace lockstep::worker
