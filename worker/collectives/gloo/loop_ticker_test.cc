#include "worker/collectives/gloo/loop_ticker.h"

#include <gloo/transport/tcp/attr.h>

#include <catch2/catch.hpp>
#include <memory>
#include <thread>

namespace lockstep::worker {
namespace {

std::shared_ptr<gloo::transport::Device> MakeLoop() {
  gloo::transport::tcp::attr attributes;
  attributes.hostname = "127.0.0.1";
  return gloo::transport::tcp::CreateDevice(attributes);
}

void AwaitTurns(const LoopTicker& ticker, uint64_t turns) {
  while (ticker.turns() < turns) std::this_thread::yield();
}

TEST_CASE("loop ticker: an idle loop turns while it is asked to, and again when it is asked again", "[gloo]") {
  const auto device = MakeLoop();
  LoopTicker ticker(device);
  CHECK(ticker.turns() == 0);

  {
    const Ticking outer(ticker);
    { const Ticking inner(ticker); }
    AwaitTurns(ticker, 3);
  }
  const Ticking later(ticker);

  AwaitTurns(ticker, ticker.turns() + 3);
}

TEST_CASE("loop ticker: it may go before its loop, and after it", "[gloo]") {
  auto device = MakeLoop();
  auto ticker = std::make_unique<LoopTicker>(device);
  const bool loop_goes_first = GENERATE(false, true);

  ticker->Start();
  AwaitTurns(*ticker, 1);
  if (loop_goes_first) device.reset();
  ticker.reset();

  CHECK((device == nullptr) == loop_goes_first);
}

TEST_CASE("loop ticker: without a loop it does nothing", "[gloo]") {
  LoopTicker ticker(nullptr);
  const Ticking ticking(ticker);
  CHECK(ticker.turns() == 0);
}

}  // namespace
}  // namespace lockstep::worker
