// The subcommands of `lockstep model`, one file each, and what they share.
//
// Threading: owned by main.
#ifndef LOCKSTEP_DEPLOY_CLI_MODEL_H_
#define LOCKSTEP_DEPLOY_CLI_MODEL_H_

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "common/graph/onnx/onnx_writer.h"

namespace lockstep::cli {

// Of graphs that never computed with a batch: any number shows that.
inline constexpr int64_t kAnyBatch = 2;

void AddModelOps(CLI::App& model, int& exit_code);
void AddModelNew(CLI::App& model, int& exit_code);
void AddModelExport(CLI::App& model, int& exit_code);
void AddModelSample(CLI::App& model, int& exit_code);

// Writes an ONNX file and says what was written. As WriteOnnx; NotFound when the folder is not there.
// `only_batch`: for batches of that size alone.
absl::Status WriteModel(const Graph& graph, const VariableReader& read, int64_t batch, const std::string& path,
                        std::optional<int64_t> only_batch = {});

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_MODEL_H_
