// Formats the answers to the page of a job as JSON (docs/design/0024-watching.md has the form).
//
// Threading: thread-safe (pure functions).
#ifndef LOCKSTEP_CHIEF_WATCH_JOB_JSON_H_
#define LOCKSTEP_CHIEF_WATCH_JOB_JSON_H_

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "chief/watch/job_record.h"
#include "chief/watch/present_job.h"
#include "chief/watch/scalar_series.h"

namespace lockstep::chief {

using Json = nlohmann::ordered_json;

// api/job. `directory`: as shown to people. `trouble`: why the record may be incomplete; empty if it is complete.
Json JobJson(const PresentJob& present, const JobRecord& record, const std::string& directory,
             const std::string& trouble, int64_t now_ms);
// api/series.
Json SeriesListJson(const ScalarHistory& scalars);
// api/series/NAME.
Json SeriesJson(const std::string& name, const ScalarSeries& series, int64_t from, int64_t to, size_t points);
// api/timeline: the entries between `from_ms` and `to_ms`.
Json TimelineJson(const JobRecord& record, int64_t from_ms, int64_t to_ms);
// api/samples.
Json SamplesJson(const JobRecord& record);

// Formats `json` on one line; bytes that are not valid UTF-8 are replaced.
std::string Dump(const Json& json);

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_WATCH_JOB_JSON_H_
