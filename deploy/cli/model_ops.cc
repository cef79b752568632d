// `lockstep model ops`: which ops of an ONNX file can be trained, and where those that cannot are.
#include <algorithm>
#include <iostream>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/graph/onnx/op_report.h"
#include "common/log/escape.h"
#include "common/status/exit_code.h"
#include "deploy/cli/commands.h"
#include "deploy/cli/model.h"
#include "worker/device/choice/evaluate_node.h"

namespace lockstep::cli {
namespace {

struct OpsOptions {
  std::string path;
  int64_t batch = 0;
};

// Of the op's nodes, those that are not supported.
int64_t Unsupported(const OpReport& report, const std::string& op) {
  return std::count_if(report.unsupported.begin(), report.unsupported.end(),
                       [&](const UnsupportedNode& node) { return node.op == op; });
}

void PrintOps(const OpReport& report) {
  int64_t nodes = 0;
  for (const auto& [op, count] : report.ops) {
    nodes += count;
    std::cout << absl::StreamFormat("%-4s  %-28s %d\n", Unsupported(report, op) == 0 ? "ok" : "no", EscapeControls(op),
                                    count);
  }
  for (const UnsupportedNode& node : report.unsupported) {
    std::cout << absl::StreamFormat("node '%s' (%s): %s\n", EscapeControls(node.node), EscapeControls(node.op),
                                    EscapeControls(node.reason));
  }
  for (const std::string& warning : report.warnings) std::cout << "warn  " << EscapeControls(warning) << "\n";
  if (report.unsupported.empty() && !report.import.ok()) {
    std::cout << EscapeControls(report.import.message()) << "\n";
  }
  if (report.import.ok() && !report.training.ok()) {
    std::cout << EscapeControls(report.training.message()) << "\n";
  }
  const auto supported = nodes - static_cast<int64_t>(report.unsupported.size());
  std::cout << absl::StreamFormat("%d of %d nodes are of supported ops", supported, nodes);
  if (report.ok()) {
    std::cout << absl::StreamFormat("; the model can be read and trains %d parameters\n", report.parameters);
  } else {
    std::cout << (!report.unsupported.empty() ? "\n"
                  : report.import.ok()        ? "; the model can be read, and cannot be trained as it is\n"
                                              : "; the model cannot be read as it is\n");
  }
}

int Ops(const OpsOptions& options) {
  absl::StatusOr<OnnxFile> file = ReadOnnxFile(options.path);
  if (!file.ok()) return Fail(file.status(), kExitBadData);
  OnnxImportOptions import;
  import.evaluate = device::EvaluateNode;
  import.batch = options.batch;
  const absl::StatusOr<OpReport> report = ReportOps(*file, import);
  if (!report.ok()) return Fail(report.status(), kExitBadData);
  PrintOps(*report);
  return report->ok() ? kExitDone : kExitBadData;
}

}  // namespace

void AddModelOps(CLI::App& model, int& exit_code) {
  CLI::App* command = model.add_subcommand("ops", "Which nodes of an ONNX file are supported, and where others are");
  auto options = std::make_shared<OpsOptions>();
  command->add_option("file", options->path, "The ONNX file")->required();
  command->add_option("--batch", options->batch, "Samples that a batch of open size stands for (default: 2)")
      ->check(CLI::Range(1, 1 << 24));
  command->callback([options, &exit_code] { exit_code = Ops(*options); });
}

}  // namespace lockstep::cli
