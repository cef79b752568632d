// The main of every test: Catch's, which also knows Bazel's shards (`shard_count` of a target): a shard runs every n-th
// of the cases that the arguments choose.
#define CATCH_CONFIG_RUNNER
#include <catch2/catch.hpp>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

namespace {

// What Bazel says in the environment; `otherwise` where it says nothing.
size_t NumberOr(size_t otherwise, const char* variable) {
  const char* text = std::getenv(variable);
  return text == nullptr ? otherwise : std::stoul(text);
}

// Tags the cases of this shard, and asks for the tag.
void ChooseShard(Catch::Session& session, size_t shard, size_t shards) {
  constexpr char kTag[] = "of this shard";
  const Catch::Config& config = session.config();
  if (session.configData().filenamesAsTags) Catch::applyFilenamesAsTags(config);
  size_t chosen = 0;
  for (const Catch::TestCase& found : Catch::getAllTestCasesSorted(config)) {
    const bool asked = config.hasTestFilters() ? Catch::matchTest(found, config.testSpec(), config) : !found.isHidden();
    if (!asked || chosen++ % shards != shard) continue;
    auto& test = const_cast<Catch::TestCase&>(found);  // as Catch itself gives tags to cases
    std::vector<std::string> tags = test.tags;
    tags.push_back(kTag);
    Catch::setTags(test, tags);
  }
  Catch::ConfigData data = session.configData();
  if (data.testsOrTags.empty()) data.testsOrTags.emplace_back();
  for (std::string& words : data.testsOrTags) words += std::string("[") + kTag + "]";
  session.useConfigData(data);
}

}  // namespace

int main(int argc, char** argv) {
  Catch::Session session;
  if (const int code = session.applyCommandLine(argc, argv); code != 0) return code;
  const size_t shards = NumberOr(1, "TEST_TOTAL_SHARDS");
  if (shards > 1) {
    ChooseShard(session, NumberOr(0, "TEST_SHARD_INDEX"), shards);
    if (const char* said = std::getenv("TEST_SHARD_STATUS_FILE")) std::ofstream(said) << "knows shards\n";
  }
  return session.run();
}
