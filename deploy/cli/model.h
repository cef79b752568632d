// The subcommands of `lockstep model`, one file each, and their shared parts.
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

// The batch size with which graphs that were never run are shown: any number will do.
inline constexpr int64_t kAnyBatch = 2;

void AddModelOps(CLI::App& model, int& exit_code);
void AddModelNew(CLI::App& model, int& exit_code);
void AddModelExport(CLI::App& model, int& exit_code);
void AddModelSample(CLI::App& model, int& exit_code);

// Writes an ONNX file and prints what was written. Codes as WriteOnnx; NotFound: the folder does not exist.
// `only_batch`: the file is for batches of this size alone.
absl::Status WriteModel(const Graph& graph, const VariableReader& read, int64_t batch, const std::string& path,
                        std::optional<int64_t> only_batch = {});

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_MODEL_H_
