#include "chief/events/tensor_events.h"

#include <catch2/catch.hpp>
#include <map>

#include "absl/strings/str_cat.h"
#include "chief/events/event_log.h"
#include "chief/events/event_reading.h"

namespace lockstep::chief {
namespace {

TensorFacts FactsNamed(const std::string& name) {
  TensorFacts facts;
  facts.set_name(name);
  facts.set_values(10);
  facts.set_not_finite(2);
  facts.set_zeros(1);
  facts.set_min(-1);
  facts.set_max(3);
  facts.set_sum(4);
  facts.set_sum_squares(16);
  facts.set_deviation(1.5);
  return facts;
}

TEST_CASE("tensor events: statistics are curves of each tensor", "[events][hooks]") {
  StateFacts facts;
  *facts.add_statistics() = FactsNamed("fc.weight");

  const Scalars scalars = StatisticsOf(facts);
  const std::map<std::string, double> values(scalars.begin(), scalars.end());

  CHECK(values == std::map<std::string, double>{{"tensors/fc.weight/min", -1},
                                                {"tensors/fc.weight/max", 3},
                                                {"tensors/fc.weight/mean", 0.5},
                                                {"tensors/fc.weight/deviation", 1.5},
                                                {"tensors/fc.weight/norm", 4},
                                                {"tensors/fc.weight/zeros", 0.1},
                                                {"tensors/fc.weight/not_finite", 0.2}});
  CHECK(StatisticsLines(facts) ==
        std::vector<std::string>{"fc.weight: -1 to 3, mean 0.5, deviation 1.5, norm 4, 10% zeros, 2 not finite"});
  for (int i = 0; i < 20; ++i) *facts.add_statistics() = FactsNamed(absl::StrCat("t", i));
  CHECK(StatisticsLines(facts).back() == "5 more tensors: TensorBoard has them");
}

TEST_CASE("tensor events: a histogram stands in the records as TensorFlow has it", "[events][hooks]") {
  StateFacts facts;
  TensorFacts tensor = FactsNamed("fc.weight");
  for (const double limit : {0.0, 3.0}) tensor.add_bucket_limit(limit);
  for (const double count : {5.0, 3.0}) tensor.add_bucket(count);
  *facts.add_histograms() = tensor;
  *facts.add_histograms() = FactsNamed("nothing.in.it");
  EventLog log;

  log.Counted(absl::UnixEpoch(), 7, HistogramsOf(facts));

  const auto events = ReadEvents(log.Take());
  REQUIRE(events.size() == 1);
  CHECK(events[0].step() == 7);
  REQUIRE(events[0].summary().value_size() == 1);
  CHECK(events[0].summary().value(0).tag() == "tensors/fc.weight");
  const tensorboard::HistogramProto& histogram = events[0].summary().value(0).histo();
  CHECK(histogram.num() == 8);
  CHECK(histogram.max() == 3);
  CHECK(histogram.bucket_limit(1) == 3);
  CHECK(histogram.bucket(0) == 5);
}

}  // namespace
}  // namespace lockstep::chief
