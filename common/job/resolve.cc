#include "common/job/resolve.h"

#include <algorithm>
#include <filesystem>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "common/job/scalar.h"
#include "common/job/suggest.h"
#include "common/status/check.h"
#include "common/status/status_macros.h"

namespace lockstep::job {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

std::string Join(const std::string& path, const std::string& key) { return path.empty() ? key : path + "." + key; }

// Whether "sibling=value|value" holds in `message`, or, without a value, the sibling is given.
bool Holds(const std::string& condition, const Message& message) {
  if (condition.empty()) return true;
  const std::pair<std::string, std::string> parts = absl::StrSplit(condition, absl::MaxSplits('=', 1));
  const FieldDescriptor* sibling = message.GetDescriptor()->FindFieldByName(parts.first);
  LS_CHECK(sibling != nullptr, "a condition names a key of its own section");
  if (parts.second.empty()) return IsSet(message, sibling);
  // A string counts without the quotes that it may need in a file.
  const bool is_string = sibling->cpp_type() == FieldDescriptor::CPPTYPE_STRING;
  const std::string value =
      is_string ? message.GetReflection()->GetString(message, sibling) : FieldText(message, sibling);
  for (const absl::string_view allowed : absl::StrSplit(parts.second, '|')) {
    if (value == allowed) return true;
  }
  return false;
}

const std::string& DefaultOf(const Key& key, const Message& message) {
  for (const Conditional& conditional : key.default_when()) {
    if (Holds(conditional.when(), message)) return conditional.value();
  }
  return key.default_();
}

absl::Status FillSection(const Places& places, const std::string& directory, const std::string& path, Message* message);

absl::Status FillField(const Places& places, const std::string& directory, const std::string& path,
                       const FieldDescriptor* field, Message* message) {
  const Key& key = KeyOf(field);
  const bool given = IsSet(*message, field);
  if (IsSection(field)) {
    if (key.section_on_demand() && !given) return absl::OkStatus();
    return FillSection(places, directory, path, message->GetReflection()->MutableMessage(message, field));
  }
  if (!Holds(key.only(), *message)) {
    if (!given) return absl::OkStatus();
    const std::pair<std::string, std::string> parts = absl::StrSplit(key.only(), absl::MaxSplits('=', 1));
    const FieldDescriptor* sibling = message->GetDescriptor()->FindFieldByName(parts.first);
    if (parts.second.empty()) {
      return places.Error(path, absl::StrCat("applies only with ", parts.first, "; remove the key"));
    }
    return places.Error(
        path, absl::StrCat("applies only with ", parts.first, ": ", absl::StrReplaceAll(parts.second, {{"|", " or "}}),
                           ", here it is ", FieldText(*message, sibling), "; remove the key"));
  }
  if (!given) {
    if (key.required()) return places.Error(path, absl::StrCat("is required: ", ExpectedText(field), ". ", key.doc()));
    const std::string& value = DefaultOf(key, *message);
    if (value.empty()) return absl::OkStatus();
    LS_RETURN_IF_ERROR(ReadValue(value, field, message));
  }
  if (key.path()) {
    const std::string text = message->GetReflection()->GetString(*message, field);
    if (text.empty()) return places.Error(path, "is an empty path");
    message->GetReflection()->SetString(message, field,
                                        (std::filesystem::path(directory) / text).lexically_normal().string());
  }
  return absl::OkStatus();
}

absl::Status FillSection(const Places& places, const std::string& directory, const std::string& path,
                         Message* message) {
  for (int i = 0; i < message->GetDescriptor()->field_count(); ++i) {
    const FieldDescriptor* field = message->GetDescriptor()->field(i);
    LS_RETURN_IF_ERROR(FillField(places, directory, Join(path, field->name()), field, message));
  }
  return absl::OkStatus();
}

bool IsHash(const std::string& text) {
  for (const char c : text) {
    if (!absl::ascii_isdigit(c) && !(c >= 'a' && c <= 'f')) return false;
  }
  return text.size() == 64;
}

absl::Status ValidateName(const Places& places, const std::string& name) {
  const std::string allowed = "letters, digits, '-', '_' and '.', at most 64, beginning with a letter or digit";
  bool good = !name.empty() && name.size() <= 64 && absl::ascii_isalnum(name[0]);
  for (const char c : name) good = good && (absl::ascii_isalnum(c) || c == '-' || c == '_' || c == '.');
  return good ? absl::OkStatus() : places.Error("name", absl::StrCat("expected ", allowed, ", found '", name, "'"));
}

absl::Status ValidateModel(const Places& places, const JobSpec& spec) {
  if (spec.model().has_builtin() == spec.model().has_onnx()) {
    return places.Error("model", spec.model().has_onnx() ? "has both builtin and onnx; give one of them"
                                                         : "gives no architecture; name one with builtin or onnx");
  }
  static constexpr absl::string_view kPresets[] = {"124M", "355M", "774M", "1558M"};
  const BuiltinModel& builtin = spec.model().builtin();
  if (builtin.has_preset() &&
      std::find(std::begin(kPresets), std::end(kPresets), builtin.preset()) == std::end(kPresets)) {
    return places.Error("model.builtin.preset",
                        absl::StrCat("expected one of ", absl::StrJoin(kPresets, ", "), ", found '", builtin.preset(),
                                     "'", DidYouMean(builtin.preset(), {std::begin(kPresets), std::end(kPresets)})));
  }
  static constexpr absl::string_view kLosses[] = {"softmax_cross_entropy", "mse", "l1", "huber", "bce_with_logits"};
  const std::string& loss = spec.model().loss();
  bool known = absl::StartsWith(loss, "output:") && loss.size() > 7;
  for (const absl::string_view name : kLosses) known = known || loss == name;
  if (!known) {
    return places.Error("model.loss",
                        absl::StrCat("expected softmax_cross_entropy, mse, l1, huber, bce_with_logits or output:NAME, "
                                     "found '",
                                     loss, "'", DidYouMean(loss, {std::begin(kLosses), std::end(kLosses)})));
  }
  return absl::OkStatus();
}

// Which files one section of the data names: tokens, inputs with labels, or one file of both.
absl::Status ValidateFiles(const Places& places, const std::string& section, const DataFiles& files) {
  const auto error = [&](const char* key, absl::string_view message) {
    return places.Error(absl::StrCat(section, ".", key), message);
  };
  if (files.has_inputs() && files.has_tokens()) return error("tokens", "is given beside inputs; give one of them");
  if (!files.has_inputs() && !files.has_tokens()) {
    return error("inputs", "is required: a path, with labels beside it; or give tokens and sequence_length");
  }
  const bool fields = files.input_fields_size() > 0 || files.has_label_field();
  const char* const fields_key = files.has_label_field() ? "label_field" : "input_fields";
  if (files.has_tokens()) {
    if (!files.has_sequence_length())
      return error("sequence_length", "is required with tokens: how many one sample has");
    if (files.has_labels()) return error("labels", "with tokens the labels are the next tokens; remove the key");
    if (files.format() != DataFiles::FORMAT_AUTO) return error("format", "is for inputs; remove the key");
    if (fields) return error(fields_key, "is for files of several fields; remove the key");
    return absl::OkStatus();
  }
  if (files.has_sequence_length()) return error("sequence_length", "is for tokens; remove the key");
  const bool one_array = files.format() == DataFiles::FORMAT_IDX || files.format() == DataFiles::FORMAT_NPY;
  if (!files.has_labels()) {
    if (one_array) return error("labels", "is required with inputs: the file of the labels or targets");
    const std::string& delimiter = files.delimiter();
    const bool usable =
        delimiter == "tab" || (delimiter.size() == 1 && delimiter.find_first_of("\"\r\n.") == std::string::npos);
    if (files.has_delimiter() && !usable) {
      return error("delimiter", absl::StrCat("expected one character or tab, found '", delimiter, "'"));
    }
    return absl::OkStatus();
  }
  if (!one_array && files.format() != DataFiles::FORMAT_AUTO) {
    return error("labels", "such a file holds the labels too: choose them with label_field and remove this key");
  }
  if (fields)
    return error(fields_key, "is for a file of several fields, and here labels have their own; remove the key");
  return absl::OkStatus();
}

absl::Status ValidateForm(const Places& places, const Data& data) {
  const std::vector<int64_t> reshape(data.reshape().begin(), data.reshape().end());
  const std::vector<int64_t> transpose(data.transpose().begin(), data.transpose().end());
  const bool as_model = reshape == std::vector<int64_t>{-1};
  if (!as_model && std::any_of(reshape.begin(), reshape.end(), [](int64_t dim) { return dim < 1; })) {
    return places.Error("data.reshape",
                        "expected dimensions of 1 and more, or [-1] for the shape that the model takes");
  }
  std::vector<int64_t> sorted = transpose;
  std::sort(sorted.begin(), sorted.end());
  for (size_t i = 0; i < sorted.size(); ++i) {
    if (sorted[i] == static_cast<int64_t>(i)) continue;
    return places.Error("data.transpose",
                        absl::StrCat("expected each of 0 to ", sorted.size() - 1, " once, for a sample of ",
                                     sorted.size(), " dimensions, found [", absl::StrJoin(transpose, ", "), "]"));
  }
  if (!reshape.empty() && !as_model && !transpose.empty() && reshape.size() != transpose.size()) {
    return places.Error("data.transpose", absl::StrCat("orders ", transpose.size(),
                                                       " dimensions, and data.reshape has ", reshape.size()));
  }
  return absl::OkStatus();
}

absl::Status ValidateData(const Places& places, const JobSpec& spec) {
  LS_RETURN_IF_ERROR(ValidateForm(places, spec.data()));
  for (const auto& [name, files] : {std::pair("train", &spec.data().train()), std::pair("eval", &spec.data().eval())}) {
    if (files == &spec.data().train() || spec.data().has_eval()) {
      LS_RETURN_IF_ERROR(ValidateFiles(places, absl::StrCat("data.", name), *files));
    }
    if (files->has_sha256() && !IsHash(files->sha256())) {
      return places.Error(absl::StrCat("data.", name, ".sha256"),
                          absl::StrCat("expected 64 lower-case hexadecimal digits, found '", files->sha256(), "'"));
    }
  }
  const Normalize& normalize = spec.data().normalize();
  if (normalize.mean_size() > 1 && normalize.std_size() > 1 && normalize.mean_size() != normalize.std_size()) {
    return places.Error("data.normalize.std",
                        absl::StrCat("has ", normalize.std_size(), " entries and mean has ", normalize.mean_size(),
                                     "; give one value, or one per channel in both"));
  }
  if (spec.has_eval() && !spec.data().has_eval()) {
    return places.Error("eval", "there is nothing to evaluate on; give data.eval, or remove this section");
  }
  if (spec.eval().weights() == Eval::WEIGHTS_EMA && !spec.train().has_ema()) {
    return places.Error("eval.weights", "there is no average of the weights; write `train: {ema: {}}`, or use model");
  }
  const std::string& loss = spec.model().loss();
  const auto metric = spec.eval().metric();
  const bool of_labels = metric == Eval::METRIC_ACCURACY || metric == Eval::METRIC_TOP5;
  const bool has_perplexity = loss == "softmax_cross_entropy" || absl::StartsWith(loss, "output:");
  if (spec.has_eval() && of_labels && loss != "softmax_cross_entropy") {
    return places.Error("eval.metric", absl::StrCat(metric == Eval::METRIC_TOP5 ? "top5" : "accuracy",
                                                    " needs class labels, and model.loss is ", loss, "; use loss"));
  }
  if (spec.has_eval() && metric == Eval::METRIC_PERPLEXITY && !has_perplexity) {
    return places.Error("eval.metric",
                        absl::StrCat("perplexity is of cross entropies, and model.loss is ", loss, "; use loss"));
  }
  if (spec.eval().has_sample() && spec.eval().sample().prompt().empty()) {
    return places.Error("eval.sample.prompt", "is empty; give it at least one byte");
  }
  if (spec.checkpoint().keep_best() && !spec.has_eval()) {
    return places.Error("checkpoint.keep_best", "needs evaluations that tell which state is the best; give data.eval");
  }
  return absl::OkStatus();
}

absl::Status ValidateTrain(const Places& places, const Train& train) {
  const int64_t shard = train.global_batch_size() / train.logical_shards();
  if (train.has_micro_batch() && (train.micro_batch() > shard || shard % train.micro_batch() != 0)) {
    return places.Error("train.micro_batch", absl::StrCat(train.micro_batch(), " samples do not divide the ", shard,
                                                          " of a logical shard (global_batch_size / logical_shards)"));
  }
  if (train.global_batch_size() % train.logical_shards() != 0) {
    return places.Error("train.logical_shards",
                        absl::StrCat(train.logical_shards(), " shards do not divide global_batch_size ",
                                     train.global_batch_size(), "; choose a divisor of it"));
  }
  if (train.schedule().name() == Schedule::NAME_COSINE && train.duration().has_time()) {
    return places.Error(
        "train.schedule.name",
        "cosine ends with the job and needs train.duration in ep, steps or samples; a time only stops a job");
  }
  if (train.schedule().name() == Schedule::NAME_COSINE && train.schedule().min_lr() > train.optimizer().lr()) {
    return places.Error(
        "train.schedule.min_lr",
        absl::StrCat(train.schedule().min_lr(), " is above train.optimizer.lr, ", train.optimizer().lr()));
  }
  if (train.optimizer().nesterov() && train.optimizer().momentum() == 0) {
    return places.Error("train.optimizer.nesterov", "needs a momentum above 0");
  }
  if (train.on_nan() == Train::ON_NAN_ROLLBACK) {
    return places.Error("train.on_nan",
                        train.reduction() == Train::REDUCTION_FAST
                            ? "rollback is not available in this version; use stop or skip_step"
                            : "rollback is refused with reduction: exact, it would compute the same NaN for ever; use "
                              "stop or skip_step");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status FillDefaults(const Places& places, const std::string& directory, JobSpec& spec) {
  // Two defaults look beyond their section; the name comes first, because a directory is called after it.
  if (spec.has_name()) LS_RETURN_IF_ERROR(ValidateName(places, spec.name()));
  if (!spec.checkpoint().has_dir()) spec.mutable_checkpoint()->set_dir(absl::StrCat("runs/", spec.name()));
  if (spec.data().has_eval()) spec.mutable_eval();
  const bool classifies = !spec.model().has_loss() || spec.model().loss() == "softmax_cross_entropy";
  if (spec.has_eval() && !spec.eval().has_weights() && spec.train().has_ema()) {
    spec.mutable_eval()->set_weights(Eval::WEIGHTS_EMA);
  }
  if (spec.has_eval() && !spec.eval().has_metric()) {
    spec.mutable_eval()->set_metric(classifies ? Eval::METRIC_ACCURACY : Eval::METRIC_LOSS);
  }
  return FillSection(places, directory, "", &spec);
}

absl::Status Validate(const Places& places, const JobSpec& spec) {
  LS_RETURN_IF_ERROR(ValidateName(places, spec.name()));
  LS_RETURN_IF_ERROR(ValidateModel(places, spec));
  LS_RETURN_IF_ERROR(ValidateData(places, spec));
  LS_RETURN_IF_ERROR(ValidateTrain(places, spec.train()));
  if (spec.numerics().mode() == job::Numerics::MODE_RELAXED) {
    return places.Error("numerics.mode", "relaxed is not available in this version; use strict");
  }
  if (spec.numerics().has_plan() && !IsHash(spec.numerics().plan())) {
    return places.Error("numerics.plan", absl::StrCat("expected the hash of a kernel plan, 64 lower-case hexadecimal "
                                                      "digits, found '",
                                                      spec.numerics().plan(), "'"));
  }
  if (spec.numerics().has_plan()) {
    return places.Error("numerics.plan",
                        "is not available in this version; leave it out, and the first worker makes one");
  }
  return absl::OkStatus();
}

}  // namespace lockstep::job
