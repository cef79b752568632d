// The learning rates of torch.optim.lr_scheduler, as tests/conformance/pytorch/optimizers.py wrote them.
//
// Threading: thread-compatible; for tests.
#ifndef LOCKSTEP_COMMON_GRAPH_GOLDEN_RATES_H_
#define LOCKSTEP_COMMON_GRAPH_GOLDEN_RATES_H_

#include <catch2/catch.hpp>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace lockstep {

// The rates of the line that begins with `schedule`.
inline std::vector<double> GoldenRates(const std::string& schedule) {
  std::ifstream file("tests/conformance/pytorch/optimizers.txt");
  REQUIRE(file.good());
  std::vector<double> rates;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string name;
    int count = 0;
    words >> name >> count;
    for (double rate = 0; name == schedule && words >> rate;) rates.push_back(rate);
  }
  return rates;
}

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_GRAPH_GOLDEN_RATES_H_
