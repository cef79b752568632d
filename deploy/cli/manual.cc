#include "deploy/cli/manual.h"

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "common/status/exit_code.h"

namespace lockstep::cli {
namespace {

constexpr std::pair<const char*, const char*> kVariables[] = {
    {"LOCKSTEP_TOKEN", "The job's token, or the credential of a role, where no `--token-file` is given."},
    {"AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_REGION, AWS_ENDPOINT_URL, AWS_CA_BUNDLE, AWS_PROFILE",
     "How buckets are reached, as AWS's own tools read them."},
    {"CUDA_VISIBLE_DEVICES", "Hides GPUs; the rest are counted from 0."},
    {"NO_COLOR", "Set to anything: no colours on a terminal."},
};

constexpr std::pair<const char*, const char*> kFiles[] = {
    {"DIR/checkpoints/step-N", "A checkpoint: weights as safetensors, the optimizer's state, the job, a manifest."},
    {"DIR/chief/address, DIR/chief/token", "Where the chief listens, and what its workers show."},
    {"DIR/events", "Curves for TensorBoard."},
    {"DIR/logs", "What chief and workers said, when `lockstep run` started them."},
};

const char* Meaning(ExitCode code) {
  switch (code) {
    case kExitDone:
      return "The command did what it was told; of a job: it is done.";
    case kExitUsage:
      return "The command line is wrong.";
    case kExitBadData:
      return "The data or the model cannot be used.";
    case kExitChiefUnreachable:
      return "The chief was not reached.";
    case kExitBug:
      return "A defect of the program, or the job failed too often.";
    case kExitStorage:
      return "The storage failed; what may pass is waited for first.";
    case kExitPreempted:
      return "The process was told to leave and saved; start it again to go on.";
    case kExitFenced:
      return "A newer chief has the job.";
    case kExitBadToken:
      return "The token was refused.";
    case kExitBadJob:
      return "The job is wrong, a port or directory is in use, or this machine cannot run it or is left out.";
  }
  return "";
}

constexpr ExitCode kCodes[] = {kExitDone,    kExitUsage,     kExitBadData, kExitChiefUnreachable, kExitBug,
                               kExitStorage, kExitPreempted, kExitFenced,  kExitBadToken,         kExitBadJob};

std::string PageName(const std::string& called) { return absl::StrReplaceAll(called, {{" ", "-"}}); }

// `text` as one argument of a macro.
std::string Argument(const std::string& text) {
  return absl::StrCat("\"", absl::StrReplaceAll(RoffText(text), {{"\"", "\\(dq"}}), "\"");
}

std::string Paragraph(const std::string& term, const std::string& text) {
  return absl::StrCat(".TP\n\\fB", RoffText(term), "\\fR\n", RoffText(text), "\n");
}

// "job", "texts ...": what stands for an argument.
std::string Placeholder(const OptionText& argument) {
  const std::string word = absl::StrCat("\\fI", RoffText(absl::AsciiStrToUpper(argument.names.back())), "\\fR");
  const std::string text = argument.repeated ? absl::StrCat(word, " ...") : word;
  return argument.required ? text : absl::StrCat("[", text, "]");
}

std::string ValueOf(const OptionText& option) {
  if (option.value == ValueKind::kNone) return "";
  if (!option.choices.empty()) return absl::StrJoin(option.choices, "|");
  return option.value == ValueKind::kNumber ? "N" : "VALUE";
}

std::string Synopsis(const CommandText& command) {
  std::string text = absl::StrCat("\\fB", RoffText(command.called), "\\fR");
  if (!command.commands.empty()) return absl::StrCat(text, " \\fICOMMAND\\fR ...\n");
  for (const OptionText& option : command.options) {
    if (!option.required) continue;
    absl::StrAppend(&text, " \\fB", RoffText(option.names.back()), "\\fR");
    const std::string value = ValueOf(option);
    if (!value.empty()) absl::StrAppend(&text, " \\fI", RoffText(value), "\\fR");
  }
  if (!command.options.empty()) text += " [\\fIOPTION\\fR ...]";
  for (const OptionText& argument : command.arguments) absl::StrAppend(&text, " ", Placeholder(argument));
  return absl::StrCat(text, "\n");
}

// A sentence, with what else is to be known of the option.
std::string Sentences(const OptionText& option) {
  std::string text = option.description;
  if (!text.empty() && text.back() != '.') text += ".";
  if (option.required) text += " Required.";
  if (option.repeated) text += " May be given more than once.";
  if (!option.default_value.empty()) absl::StrAppend(&text, " Default: ", option.default_value, ".");
  return RoffText(text);
}

std::string Option(const OptionText& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.names) names.push_back(absl::StrCat("\\fB", RoffText(name), "\\fR"));
  std::string text = absl::StrCat(".TP\n", absl::StrJoin(names, ", "));
  const std::string value = ValueOf(option);
  if (!value.empty()) absl::StrAppend(&text, " \\fI", RoffText(value), "\\fR");
  return absl::StrCat(text, "\n", Sentences(option), "\n");
}

std::string Lists(const CommandText& command) {
  std::string text;
  if (!command.commands.empty()) text += ".SH COMMANDS\n";
  for (const CommandText& below : command.commands) {
    absl::StrAppend(&text, ".TP\n.BR ", RoffText(PageName(below.called)), " (1)\n", RoffText(below.description), ".\n");
  }
  if (!command.arguments.empty()) text += ".SH ARGUMENTS\n";
  for (const OptionText& argument : command.arguments) {
    absl::StrAppend(&text, ".TP\n\\fI", RoffText(absl::AsciiStrToUpper(argument.names.back())), "\\fR\n",
                    Sentences(argument), "\n");
  }
  if (!command.options.empty()) text += ".SH OPTIONS\n";
  for (const OptionText& option : command.options) text += Option(option);
  return text;
}

std::string SeeAlso(const CommandText& program, const CommandText& command) {
  std::vector<std::string> pages;
  for (const CommandText* const other : AllCommands(program)) {
    const std::string& above = command.called;
    const bool related = above.compare(0, other->called.size() + 1, absl::StrCat(other->called, " ")) == 0;
    if (related) pages.push_back(absl::StrCat(".BR ", RoffText(PageName(other->called)), " (1)"));
  }
  return pages.empty() ? "" : absl::StrCat(".SH SEE ALSO\n", absl::StrJoin(pages, " ,\n"), "\n");
}

std::string Page(const CommandText& program, const CommandText& command, const std::string& version,
                 const std::string& date) {
  const std::string name = PageName(command.called);
  std::string text = absl::StrCat(".TH ", Argument(absl::AsciiStrToUpper(name)), " 1 \"", date, "\" ",
                                  Argument(version), "\n.SH NAME\n", RoffText(name), " \\- ",
                                  RoffText(command.description), "\n.SH SYNOPSIS\n", Synopsis(command));
  text += Lists(command);
  if (&command == &program) {
    text += ".SH ENVIRONMENT\n";
    for (const auto& [variable, meaning] : kVariables) text += Paragraph(variable, meaning);
    text += ".SH FILES\nOf a job whose directory is DIR, on a file system or in a bucket:\n";
    for (const auto& [file, meaning] : kFiles) text += Paragraph(file, meaning);
  }
  text += ".SH EXIT STATUS\n";
  for (const ExitCode code : kCodes) text += Paragraph(absl::StrCat(code), Meaning(code));
  return absl::StrCat(text, SeeAlso(program, command));
}

}  // namespace

std::string RoffText(const std::string& text) {
  std::string roff;
  bool bold = false;
  for (const char c : text) {
    if (c == '`') {
      bold = !bold;
      roff += bold ? "\\fB" : "\\fR";
    } else if (c == '\\') {
      roff += "\\e";
    } else if (c == '-') {
      roff += "\\-";
    } else {
      if ((c == '.' || c == '\'') && roff.empty()) roff += "\\&";
      roff += c;
    }
  }
  return roff;
}

std::vector<ManualPage> ManualPages(const CommandText& program, const std::string& version, const std::string& date) {
  std::vector<ManualPage> pages;
  for (const CommandText* const command : AllCommands(program)) {
    pages.push_back({absl::StrCat(PageName(command->called), ".1"), Page(program, *command, version, date)});
  }
  return pages;
}

}  // namespace lockstep::cli
