// `lockstep model sample`: what a trained language model of bytes writes.
#include <unistd.h>

#include <iostream>
#include <map>
#include <memory>
#include <string>

#include "common/log/escape.h"
#include "common/status/exit_code.h"
#include "common/status/status_macros.h"
#include "deploy/cli/commands.h"
#include "deploy/cli/model.h"
#include "deploy/cli/trained_model.h"
#include "worker/device/choice/devices.h"
#include "worker/plan/plan.h"
#include "worker/sample/text_writer.h"

namespace lockstep::cli {
namespace {

struct SampleOptions {
  TrainedModelChoice model;
  worker::TextOptions text;
};

absl::Status Sample(const SampleOptions& options) {
  if (options.text.prompt.empty()) return absl::InvalidArgumentError("--prompt is empty; give it at least one byte");
  LS_ASSIGN_OR_RETURN(const TrainedModel model, TrainedModel::Open(options.model));
  LS_ASSIGN_OR_RETURN(const Graph graph, worker::MakeTextGraph(model.metagraph()));
  std::map<std::string, Tensor> variables;
  std::map<std::string, std::byte*> addresses;
  for (const Variable& variable : graph.variables) {
    LS_ASSIGN_OR_RETURN(Tensor tensor, model.Read(variable));
    addresses[variable.name] = variables.emplace(variable.name, std::move(tensor)).first->second.data();
  }
  LS_ASSIGN_OR_RETURN(const auto device, device::MakeDevice(device::DeviceKind::kCpu, {}));
  LS_ASSIGN_OR_RETURN(const auto plan, worker::Plan::Make(device.get(), graph, addresses, {}));
  std::cout << model.Describe() << ":\n" << options.text.prompt;
  // What a model writes must not command a terminal; a file gets its bytes.
  const bool shown = isatty(STDOUT_FILENO) != 0;
  char before = 0;
  const auto write = [&](char byte) {
    std::cout << (shown ? EscapeControl(byte, before) : std::string(1, byte)) << std::flush;
    before = byte;
  };
  LS_RETURN_IF_ERROR(worker::WriteText(*plan, options.text, write).status());
  std::cout << "\n";
  return absl::OkStatus();
}

}  // namespace

void AddModelSample(CLI::App& model, int& exit_code) {
  CLI::App* command = model.add_subcommand("sample", "Let a trained language model of bytes write");
  auto options = std::make_shared<SampleOptions>();
  worker::TextOptions& text = options->text;
  AddTrainedModelChoice(*command, options->model);
  command->add_option("--prompt", text.prompt, "What the text begins with (default: a new line)");
  command->add_option("--tokens", text.bytes, "How many bytes to write (400)")->check(CLI::Range(0, 1 << 24));
  command->add_option("--temperature", text.temperature, "0: always the likeliest; 1: as the model says (0.8)")
      ->check(CLI::Range(0.0, 100.0));
  command->add_option("--seed", text.seed, "The same seed gives the same text (0)");
  command->callback([options, &exit_code] {
    const absl::Status status = Sample(*options);
    exit_code = status.ok() ? static_cast<int>(kExitDone) : Fail(status, StorageExitCode(status));
  });
}

}  // namespace lockstep::cli
