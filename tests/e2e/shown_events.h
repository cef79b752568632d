// Reads all event files of a job as TensorBoard does, for tests of real processes.
//
// Threading: thread-compatible; tests only.
#ifndef LOCKSTEP_TESTS_E2E_SHOWN_EVENTS_H_
#define LOCKSTEP_TESTS_E2E_SHOWN_EVENTS_H_

#include <catch2/catch.hpp>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "chief/events/event_reading.h"

namespace lockstep::e2e {

// The content that TensorBoard would show. ShowEvents fails the test if a step occurs twice under a tag.
struct Shown {
  std::map<std::string, std::map<int64_t, float>> curves;  // by tag and step
  std::map<std::string, std::map<int64_t, std::string>> texts;
  std::set<int64_t> starts, checkpoints;
  int graphs = 0, metagraphs = 0;

  // The newest value of a curve.
  float Last(const std::string& tag) const { return curves.at(tag).rbegin()->second; }
};

// `files`: contents by name, read in the order of names. A start mark drops what was read of its step and later ones.
inline Shown ShowEvents(const std::map<std::string, std::string>& files) {
  Shown shown;
  for (const auto& [name, content] : files) {
    CAPTURE(name);
    const std::vector<tensorboard::Event> events = chief::ReadEvents(content);
    REQUIRE_FALSE(events.empty());
    CHECK(events[0].file_version() == "brain.Event:2");
    for (const auto& event : events) {
      shown.graphs += event.what_case() == tensorboard::Event::kGraphDef ? 1 : 0;
      shown.metagraphs += event.what_case() == tensorboard::Event::kMetaGraphDef ? 1 : 0;
      if (event.session_log().status() == tensorboard::SessionLog::START) {
        shown.starts.insert(event.step());
        for (auto& [tag, curve] : shown.curves) curve.erase(curve.lower_bound(event.step()), curve.end());
        for (auto& [tag, texts] : shown.texts) texts.erase(texts.lower_bound(event.step()), texts.end());
      }
      if (event.session_log().status() == tensorboard::SessionLog::CHECKPOINT) shown.checkpoints.insert(event.step());
      for (const auto& value : event.summary().value()) {
        CAPTURE(value.tag(), event.step());
        if (value.has_tensor()) {
          CHECK(shown.texts[value.tag()].emplace(event.step(), value.tensor().string_val(0)).second);
        } else {
          CHECK(shown.curves[value.tag()].emplace(event.step(), value.simple_value()).second);
        }
      }
    }
  }
  return shown;
}

}  // namespace lockstep::e2e

#endif  // LOCKSTEP_TESTS_E2E_SHOWN_EVENTS_H_
