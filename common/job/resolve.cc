#include "common/job/resolve.h"

#include <algorithm>
#include <filesystem>
#include <initializer_list>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "common/job/extent.h"
#include "common/job/image_rules.h"
#include "common/job/scalar.h"
#include "common/job/suggest.h"
#include "common/object_store/s3_url.h"
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

// Fills the sections of one job.
class Filling {
 public:
  Filling(const Places& places, const std::string& directory, JobMistakes& mistakes)
      : places_(places), directory_(directory), mistakes_(mistakes) {}

  void Section(const std::string& path, Message* message) {
    for (int i = 0; i < message->GetDescriptor()->field_count(); ++i) {
      const FieldDescriptor* field = message->GetDescriptor()->field(i);
      const std::string key = Join(path, field->name());
      if (IsSectionList(field)) {
        for (int item = 0; item < message->GetReflection()->FieldSize(*message, field); ++item) {
          Section(absl::StrCat(key, ".", item), message->GetReflection()->MutableRepeatedMessage(message, field, item));
        }
      } else if (!IsSection(field)) {
        if (!mistakes_.IsInvalid(key)) mistakes_.Add(key, Value(path, key, field, message));
      } else if (!KeyOf(field).section_on_demand() || IsSet(*message, field)) {
        Section(key, message->GetReflection()->MutableMessage(message, field));
      }
    }
  }

 private:
  absl::Status Value(const std::string& section, const std::string& path, const FieldDescriptor* field,
                     Message* message) {
    const Key& key = KeyOf(field);
    const bool given = IsSet(*message, field);
    const std::pair<std::string, std::string> only = absl::StrSplit(key.only(), absl::MaxSplits('=', 1));
    if (!only.first.empty() && mistakes_.IsInvalid(Join(section, only.first))) return absl::OkStatus();
    if (!Holds(key.only(), *message)) {
      if (!given) return absl::OkStatus();
      const FieldDescriptor* sibling = message->GetDescriptor()->FindFieldByName(only.first);
      if (only.second.empty()) {
        return places_.Error(path, absl::StrCat("applies only with ", only.first, "; remove the key"));
      }
      return places_.Error(
          path, absl::StrCat("applies only with ", only.first, ": ", absl::StrReplaceAll(only.second, {{"|", " or "}}),
                             ", here it is ", FieldText(*message, sibling), "; remove the key"));
    }
    if (!given) {
      if (key.required()) {
        return places_.Error(path, absl::StrCat("is required: ", ExpectedText(field), ". ", key.doc()));
      }
      const std::string& value = DefaultOf(key, *message);
      if (value.empty()) return absl::OkStatus();
      LS_RETURN_IF_ERROR(ReadValue(value, field, message));
    }
    if (key.path()) {
      const std::string text = message->GetReflection()->GetString(*message, field);
      if (text.empty()) return places_.Error(path, "is an empty path");
      if (IsUrl(text) || (key.or_bucket() && IsS3Url(text))) return ResolveUrl(path, key.or_bucket(), text);
      message->GetReflection()->SetString(message, field,
                                          (std::filesystem::path(directory_) / text).lexically_normal().string());
    }
    return absl::OkStatus();
  }

  // A place in a bucket lies beside nothing.
  absl::Status ResolveUrl(const std::string& path, bool or_bucket, const std::string& text) const {
    if (!or_bucket) return places_.Error(path, absl::StrCat("'", text, "' is a URL; this is read from this machine"));
    const absl::Status place = CheckPlace(text);
    return place.ok() ? place : places_.Error(path, std::string(place.message()));
  }

  const Places& places_;
  const std::string& directory_;
  JobMistakes& mistakes_;
};

// Notes what breaks a rule across keys, unless one of the keys is mistaken already.
class Rules {
 public:
  Rules(const Places& places, JobMistakes& mistakes) : places_(places), mistakes_(mistakes) {}

  void Error(const std::string& key, absl::string_view message) {
    if (!mistakes_.IsInvalid(key)) mistakes_.Add(key, places_.Error(key, message));
  }
  bool Sound(std::initializer_list<absl::string_view> keys) const {
    return std::none_of(keys.begin(), keys.end(), [&](absl::string_view key) { return mistakes_.IsInvalid(key); });
  }

  void Name(const std::string& name);
  void Model(const job::Model& model);
  void Files(const std::string& section, const DataFiles& files);
  void Augmentation(const JobSpec& spec);
  void Data(const job::Data& data);
  void Evaluation(const JobSpec& spec);
  void Batch(const Train& train);
  void Training(const Train& train);
  void Observe(const job::Observe& observe);

 private:
  // Which files one section of the data names: tokens, inputs with labels, or one file of both.
  void TokenFile(const std::string& section, const DataFiles& files);
  void ArrayFiles(const std::string& section, const DataFiles& files);
  void Form(const job::Data& data);

  const Places& places_;
  JobMistakes& mistakes_;
  bool own_loss_ = false;  // the loss is an output of the model, which needs no labels
};

void Rules::Name(const std::string& name) {
  bool good = !name.empty() && name.size() <= 64 && absl::ascii_isalnum(name[0]);
  for (const char c : name) good = good && (absl::ascii_isalnum(c) || c == '-' || c == '_' || c == '.');
  if (good) return;
  Error("name", absl::StrCat("expected letters, digits, '-', '_' and '.', at most 64, beginning with a letter or "
                             "digit, found '",
                             name, "'"));
}

void Rules::Model(const job::Model& model) {
  if (model.has_builtin() == model.has_onnx() && Sound({"model.builtin", "model.onnx"})) {
    Error("model", model.has_onnx() ? "has both builtin and onnx; give one of them"
                                    : "gives no architecture; name one with builtin or onnx");
  }
  static constexpr absl::string_view kPresets[] = {"124M", "355M", "774M", "1558M"};
  const BuiltinModel& builtin = model.builtin();
  if (builtin.has_preset() &&
      std::find(std::begin(kPresets), std::end(kPresets), builtin.preset()) == std::end(kPresets)) {
    Error("model.builtin.preset",
          absl::StrCat("expected one of ", absl::StrJoin(kPresets, ", "), ", found '", builtin.preset(), "'",
                       DidYouMean(builtin.preset(), {std::begin(kPresets), std::end(kPresets)})));
  }
  static constexpr absl::string_view kLosses[] = {"softmax_cross_entropy", "mse", "l1", "huber", "bce_with_logits"};
  const std::string& loss = model.loss();
  own_loss_ = absl::StartsWith(loss, "output:");
  bool known = own_loss_ && loss.size() > 7;
  for (const absl::string_view name : kLosses) known = known || loss == name;
  if (!known) {
    Error("model.loss",
          absl::StrCat("expected softmax_cross_entropy, mse, l1, huber, bce_with_logits or output:NAME, found '", loss,
                       "'", DidYouMean(loss, {std::begin(kLosses), std::end(kLosses)})));
  }
}

void Rules::TokenFile(const std::string& section, const DataFiles& files) {
  const auto error = [&](const char* key, absl::string_view message) {
    Error(absl::StrCat(section, ".", key), message);
  };
  if (!files.has_sequence_length()) {
    error("sequence_length", "is required with tokens: how many one sample has");
  }
  if (files.has_labels()) error("labels", "with tokens the labels are the next tokens; remove the key");
  if (files.format() != DataFiles::FORMAT_AUTO) error("format", "is for inputs; remove the key");
  if (files.has_label_field()) error("label_field", "is for files of several fields; remove the key");
  if (files.input_fields_size() > 0) error("input_fields", "is for files of several fields; remove the key");
}

void Rules::ArrayFiles(const std::string& section, const DataFiles& files) {
  const auto error = [&](const char* key, absl::string_view message) {
    Error(absl::StrCat(section, ".", key), message);
  };
  if (files.has_sequence_length()) error("sequence_length", "is for tokens; remove the key");
  for (const ImageMistake& mistake : ImageMistakes(files)) error(mistake.key, mistake.message);
  if (!Sound({absl::StrCat(section, ".format"), absl::StrCat(section, ".labels")})) return;
  const bool one_array = files.format() == DataFiles::FORMAT_IDX || files.format() == DataFiles::FORMAT_NPY;
  if (!files.has_labels()) {
    if (one_array && !own_loss_) error("labels", "is required with inputs: the file of the labels or targets");
    const std::string& delimiter = files.delimiter();
    const bool usable =
        delimiter == "tab" || (delimiter.size() == 1 && delimiter.find_first_of("\"\r\n.") == std::string::npos);
    if (files.has_delimiter() && !usable) {
      error("delimiter", absl::StrCat("expected one character or tab, found '", delimiter, "'"));
    }
    return;
  }
  if (!one_array && files.format() != DataFiles::FORMAT_AUTO) {
    return error("labels", "such a file holds the labels too: choose them with label_field and remove this key");
  }
  const char* const own = "is for a file of several fields, and here labels have their own; remove the key";
  if (files.has_label_field()) error("label_field", own);
  if (files.input_fields_size() > 0) error("input_fields", own);
}

void Rules::Files(const std::string& section, const DataFiles& files) {
  const std::string inputs = absl::StrCat(section, ".inputs"), tokens = absl::StrCat(section, ".tokens");
  if (!Sound({inputs, tokens})) return;
  if (files.has_inputs() && files.has_tokens()) return Error(tokens, "is given beside inputs; give one of them");
  if (!files.has_inputs() && !files.has_tokens()) {
    return Error(inputs, "is required: a path, with labels beside it; or give tokens and sequence_length");
  }
  files.has_tokens() ? TokenFile(section, files) : ArrayFiles(section, files);
}

// How samples are seen: data.reshape and data.transpose.
void Rules::Form(const job::Data& data) {
  const std::vector<int64_t> reshape(data.reshape().begin(), data.reshape().end());
  const std::vector<int64_t> transpose(data.transpose().begin(), data.transpose().end());
  if (data.train().has_tokens() || data.eval().has_tokens()) {
    const absl::string_view message = "is for samples of several dimensions, and tokens are one run; remove the key";
    if (!reshape.empty()) Error("data.reshape", message);
    if (!transpose.empty()) Error("data.transpose", message);
    return;
  }
  const bool as_model = reshape == std::vector<int64_t>{-1};
  if (!as_model && std::any_of(reshape.begin(), reshape.end(), [](int64_t dim) { return dim < 1; })) {
    Error("data.reshape", "expected dimensions of 1 and more, or [-1] for the shape that the model takes");
  }
  std::vector<int64_t> sorted = transpose;
  std::sort(sorted.begin(), sorted.end());
  for (size_t i = 0; i < sorted.size(); ++i) {
    if (sorted[i] == static_cast<int64_t>(i)) continue;
    Error("data.transpose", absl::StrCat("expected each of 0 to ", sorted.size() - 1, " once, for a sample of ",
                                         sorted.size(), " dimensions, found [", absl::StrJoin(transpose, ", "), "]"));
  }
  if (!reshape.empty() && !as_model && !transpose.empty() && reshape.size() != transpose.size() &&
      Sound({"data.reshape"})) {
    Error("data.transpose",
          absl::StrCat("orders ", transpose.size(), " dimensions, and data.reshape has ", reshape.size()));
  }
}

void Rules::Augmentation(const JobSpec& spec) {
  const auto note = [&](const std::vector<ImageMistake>& mistakes) {
    for (const ImageMistake& mistake : mistakes) Error(absl::StrCat("data.augment.", mistake.key), mistake.message);
  };
  if (Sound({"data.augment.resized_crop", "data.train.image_decode"})) note(AugmentMistakes(spec.data()));
  const bool sound = Sound({"model.loss", "train.global_batch_size", "train.logical_shards", "train.micro_batch"});
  if (sound) note(MixingMistakes(spec));
}

void Rules::Data(const job::Data& data) {
  Form(data);
  for (const auto& [name, files] : {std::pair("train", &data.train()), std::pair("eval", &data.eval())}) {
    const std::string section = absl::StrCat("data.", name);
    if (files == &data.train() || data.has_eval()) Files(section, *files);
    if (files->has_sha256() && !IsHash(files->sha256())) {
      Error(absl::StrCat(section, ".sha256"),
            absl::StrCat("expected 64 lower-case hexadecimal digits, found '", files->sha256(), "'"));
    }
  }
  const Normalize& normalize = data.normalize();
  if (normalize.mean_size() > 1 && normalize.std_size() > 1 && normalize.mean_size() != normalize.std_size() &&
      Sound({"data.normalize.mean"})) {
    Error("data.normalize.std", absl::StrCat("has ", normalize.std_size(), " entries and mean has ",
                                             normalize.mean_size(), "; give one value, or one per channel in both"));
  }
}

void Rules::Evaluation(const JobSpec& spec) {
  const Eval& eval = spec.eval();
  if (spec.has_eval() && !spec.data().has_eval() && Sound({"data.eval"})) {
    Error("eval", "there is nothing to evaluate on; give data.eval, or remove this section");
  }
  if (eval.weights() == Eval::WEIGHTS_EMA && !spec.train().has_ema() && Sound({"train.ema"})) {
    Error("eval.weights", "there is no average of the weights; write `train: {ema: {}}`, or use model");
  }
  const std::string& loss = spec.model().loss();
  const bool has_perplexity = loss == "softmax_cross_entropy" || absl::StartsWith(loss, "output:");
  if (spec.has_eval() && Sound({"model.loss"})) {
    const bool of_labels = eval.metric() == Eval::METRIC_ACCURACY || eval.metric() == Eval::METRIC_TOP5;
    if (of_labels && loss != "softmax_cross_entropy") {
      Error("eval.metric", absl::StrCat(eval.metric() == Eval::METRIC_TOP5 ? "top5" : "accuracy",
                                        " needs class labels, and model.loss is ", loss, "; use loss"));
    }
    if (eval.metric() == Eval::METRIC_PERPLEXITY && !has_perplexity) {
      Error("eval.metric", absl::StrCat("perplexity is of cross entropies, and model.loss is ", loss, "; use loss"));
    }
  }
  if (eval.has_sample() && eval.sample().prompt().empty()) {
    Error("eval.sample.prompt", "is empty; give it at least one byte");
  }
  if (spec.checkpoint().keep_best() && !spec.has_eval() && Sound({"data.eval", "eval"})) {
    Error("checkpoint.keep_best", "needs evaluations that tell which state is the best; give data.eval");
  }
  const bool plateau = spec.train().schedule().name() == job::Schedule::NAME_PLATEAU;
  if (plateau && !spec.has_eval() && Sound({"data.eval", "eval"})) {
    Error("train.schedule.name", "plateau needs evaluations that tell when the rate drops; give data.eval");
  }
}

void Rules::Batch(const Train& train) {
  if (!Sound({"train.global_batch_size", "train.logical_shards"})) return;
  if (train.global_batch_size() % train.logical_shards() != 0) {
    return Error("train.logical_shards",
                 absl::StrCat(train.logical_shards(), " shards do not divide global_batch_size ",
                              train.global_batch_size(), "; choose a divisor of it"));
  }
  const int64_t shard = train.global_batch_size() / train.logical_shards();
  if (train.has_micro_batch() && (train.micro_batch() > shard || shard % train.micro_batch() != 0)) {
    Error("train.micro_batch", absl::StrCat(train.micro_batch(), " samples do not divide the ", shard,
                                            " of a logical shard (global_batch_size / logical_shards)"));
  }
}

void Rules::Training(const Train& train) {
  if (ScheduleEndsWithJob(train.schedule().name()) && train.duration().has_time()) {
    Error("train.schedule.name",
          "this schedule ends with the job and needs train.duration in ep, steps or samples; a time only stops a job");
  }
  if (train.schedule().min_lr() > train.optimizer().lr() && Sound({"train.optimizer.lr"})) {
    Error("train.schedule.min_lr",
          absl::StrCat(train.schedule().min_lr(), " is above train.optimizer.lr, ", train.optimizer().lr()));
  }
  if (train.optimizer().nesterov() && train.optimizer().momentum() == 0 && Sound({"train.optimizer.momentum"})) {
    Error("train.optimizer.nesterov", "needs a momentum above 0");
  }
  for (int i = 0; i < train.optimizer().groups_size(); ++i) {
    const job::ParameterGroup& group = train.optimizer().groups(i);
    if (group.has_lr() || group.has_weight_decay()) continue;
    Error(absl::StrCat("train.optimizer.groups[", i, "]"), "changes nothing; give it lr or weight_decay");
  }
}

void Rules::Observe(const job::Observe& observe) {
  const std::string& http = observe.http();
  if (http == "auto" || http == "off") return;
  const size_t colon = http.rfind(':');
  int port = -1;
  const bool reads = colon != std::string::npos && colon > 0 && absl::SimpleAtoi(http.substr(colon + 1), &port);
  if (reads && port >= 0 && port <= 65535) return;
  Error("observe.http", absl::StrCat("expected auto, off or HOST:PORT, found '", http, "'"));
}

}  // namespace

void FillDefaults(const Places& places, const std::string& directory, JobSpec& spec, JobMistakes& mistakes) {
  // Two defaults look beyond their section; the name comes first, because a directory is called after it.
  if (spec.has_name()) Rules(places, mistakes).Name(spec.name());
  if (!spec.checkpoint().has_dir()) spec.mutable_checkpoint()->set_dir(absl::StrCat("runs/", spec.name()));
  if (spec.data().has_eval()) spec.mutable_eval();
  const bool classifies = !spec.model().has_loss() || spec.model().loss() == "softmax_cross_entropy";
  if (spec.has_eval() && !spec.eval().has_weights() && spec.train().has_ema()) {
    spec.mutable_eval()->set_weights(Eval::WEIGHTS_EMA);
  }
  if (spec.has_eval() && !spec.eval().has_metric()) {
    spec.mutable_eval()->set_metric(classifies ? Eval::METRIC_ACCURACY : Eval::METRIC_LOSS);
  }
  Filling(places, directory, mistakes).Section("", &spec);
}

void Validate(const Places& places, const JobSpec& spec, JobMistakes& mistakes) {
  Rules rules(places, mistakes);
  rules.Name(spec.name());
  rules.Model(spec.model());
  rules.Data(spec.data());
  rules.Evaluation(spec);
  rules.Batch(spec.train());
  rules.Augmentation(spec);
  rules.Training(spec.train());
  rules.Observe(spec.observe());
}

}  // namespace lockstep::job
