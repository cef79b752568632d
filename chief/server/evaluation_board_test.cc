#include "chief/server/evaluation_board.h"

#include <catch2/catch.hpp>

namespace lockstep::chief {
namespace {

EvaluationDone DoneAt(uint64_t step, EvaluationSums first, EvaluationSums second) {
  return EvaluationDone{"line", step, {SliceResult{0, first}, SliceResult{1, second}}};
}

constexpr EvaluationRule kRule{.id = 3, .metric = Metric::kAccuracy, .higher_is_better = true, .patience = 4};

}  // namespace

TEST_CASE("evaluation board: slices are folded, and the line says what the metrics are", "[chief]") {
  EvaluationBoard board(kRule, {}, false);

  const std::string line = board.Add(DoneAt(10, {.loss = 3, .denominator = 4, .correct = 1, .top5 = 4, .counted = 4},
                                            {.loss = 1, .denominator = 4, .correct = 3, .top5 = 3, .counted = 4}));

  CHECK(line == "evaluated step 10  loss 0.5000  accuracy 0.5000  top5 0.8750  (best)");
  CHECK(board.best_step() == 10);
  CHECK(board.best_value() == 0.5);
}

TEST_CASE("evaluation board: five classes have no top5, sequences a perplexity", "[chief]") {
  const EvaluationSums sums{.loss = 0, .denominator = 4, .correct = 1, .top5 = 4, .counted = 4};
  EvaluationBoard images(kRule, {}, false);
  EvaluationBoard text(kRule, {}, true);

  CHECK(images.Add(DoneAt(1, sums, sums)) == "evaluated step 1  loss 0.0000  accuracy 0.2500  (best)");
  CHECK(text.Add(DoneAt(1, sums, sums)) == "evaluated step 1  loss 0.0000  perplexity 1.0000  accuracy 0.2500  (best)");
}

TEST_CASE("evaluation board: it goes on from the checkpoint's ledger and counts what did not improve", "[chief]") {
  const EvaluationLedger before{
      .rule = 3, .step = 5, .value = 0.9, .best_step = 5, .best_value = 0.9, .reference = 0.9};
  const EvaluationSums sums{.loss = 1, .denominator = 1, .correct = 1, .top5 = 2, .counted = 2};
  EvaluationBoard board(kRule, before, false);
  EvaluationBoard other({.id = 4, .metric = Metric::kAccuracy, .higher_is_better = true}, before, false);

  CHECK(board.Add(DoneAt(10, sums, sums)) == "evaluated step 10  loss 1.0000  accuracy 0.5000  no improvement 1/4");
  CHECK(board.best_step() == 5);
  CHECK_FALSE(board.ended_early());
  // What a snapshot says counts more: it knows of evaluations that were not told.
  board.Follow({.rule = 3, .step = 30, .best_step = 5, .stale = 4});
  CHECK(board.ended_early());
  other.Add(DoneAt(10, sums, sums));
  CHECK(other.best_step() == 10);
}

TEST_CASE("evaluation board: where training goes back, later evaluations are judged anew", "[chief]") {
  const EvaluationSums good{.loss = 1, .denominator = 1, .correct = 4, .top5 = 4, .counted = 4};
  const EvaluationSums poor{.loss = 1, .denominator = 1, .correct = 1, .top5 = 4, .counted = 4};
  EvaluationBoard board(kRule, {.rule = 3, .step = 5, .value = 0.5, .best_step = 5, .best_value = 0.5}, false);
  board.Add(DoneAt(10, good, good));
  board.Add(DoneAt(20, good, good));

  board.GoBackTo(7);
  board.Add(DoneAt(10, poor, poor));

  CHECK(board.step() == 10);
  CHECK(board.best_step() == 5);
  CHECK(board.best_value() == 0.5);
}

}  // namespace lockstep::chief
