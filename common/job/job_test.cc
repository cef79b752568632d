#include "common/job/job.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/job/job_test_util.h"
#include "common/job/scalar.h"
#include "common/job/yaml_reader.h"
#include "google/protobuf/util/message_differencer.h"

namespace lockstep {
namespace {

using google::protobuf::util::MessageDifferencer;

void CheckError(const std::string& text, const std::vector<std::string>& overrides,
                const std::vector<std::string>& expected) {
  const auto spec = ParseJob(text, "/jobs/job.yaml", overrides);
  REQUIRE_FALSE(spec.ok());
  CHECK(spec.status().code() == absl::StatusCode::kInvalidArgument);
  for (const std::string& part : expected) CHECK_THAT(std::string(spec.status().message()), Catch::Contains(part));
}

TEST_CASE("job: what the file leaves out is filled in, and paths are relative to the file", "[job]") {
  const JobSpec spec = Good(kJob);

  CHECK(spec.model().loss() == "softmax_cross_entropy");
  CHECK(spec.data().train().inputs() == "/jobs/x.idx");
  CHECK(spec.checkpoint().dir() == "/jobs/runs/small");
  CHECK(spec.train().logical_shards() == 8);
  CHECK(spec.train().optimizer().name() == job::Optimizer::NAME_SGD);
  CHECK(spec.train().optimizer().has_momentum());
  CHECK_FALSE(spec.train().optimizer().has_beta1());
  CHECK_FALSE(spec.train().has_clip_norm());
  CHECK(spec.eval().metric() == job::Eval::METRIC_ACCURACY);
  CHECK(spec.cluster().workers().min() == 1);
  CHECK(spec.cluster().heartbeat_timeout().seconds() == 5);
  CHECK_FALSE(spec.data().has_normalize());

  CHECK_FALSE(Good(With("  eval: {inputs: tx.idx, labels: ty.idx}\n", "")).has_eval());
  CHECK(Good(kJob, {"model.loss=mse"}).eval().better() == job::Eval::BETTER_LOWER);
  CHECK(Good(kJob, {"train.optimizer.name=adamw"}).train().optimizer().weight_decay() == 0.01);
  CHECK(Good(kJob, {"train.optimizer.name=adam"}).train().optimizer().weight_decay() == 0);
  CHECK(Good(kJob, {"data.train.inputs=/abs/x", "checkpoint.dir=../out"}).checkpoint().dir() == "/out");
  CHECK(Good(kJob, {"checkpoint.dir=s3://models/runs/7"}).checkpoint().dir() == "s3://models/runs/7");
}

TEST_CASE("job: weights to begin from are a path, or a section with one", "[job]") {
  const auto path_of = [](const JobSpec& spec) { return spec.model().from().path(); };
  const std::string builtin = "model: {builtin: {name: lenet}}";
  CHECK_FALSE(Good(kJob).model().has_from());
  const JobSpec plain = Good(With(builtin, "model: {builtin: {name: lenet}, from: runs/7}"));
  CHECK(path_of(plain) == "/jobs/runs/7");
  CHECK(plain.model().from().weights() == job::WarmStart::WEIGHTS_MODEL);
  CHECK(path_of(Good(With(builtin, "model: {builtin: {name: lenet}, from: {path: runs/7}}"))) == "/jobs/runs/7");
  CHECK(path_of(Good(kJob, {"model.from=runs/7"})) == "/jobs/runs/7");
  CHECK(path_of(Good(kJob, {"model.from=s3://models/runs/7"})) == "s3://models/runs/7");
  CHECK(Good(kJob, {"model.from=a", "model.from.rename={\"x.*\": \"y.*\"}"}).model().from().rename().at("x.*") ==
        "y.*");
  CHECK_FALSE(Good(kJob, {"model.from=runs/7", "model.from=null"}).model().has_from());
  // Where a job began matters to no checkpoint that it has.
  CHECK(CompareJobs(plain, Good(kJob)).CanResume());

  CheckError(kJob, {"model.from.step=7"}, {"model.from.path", "is required"});
  CheckError(kJob, {"model.from=[a, b]"}, {"model.from", "expected a section of keys, found a list"});
  CheckError(kJob, {"model.from=s3://"}, {"model.from"});
}

TEST_CASE("job: a URL is a path only where it is s3's", "[job]") {
  CheckError(kJob, {"checkpoint.dir=gs://models/runs/7"},
             {"checkpoint.dir", "gs://models/runs/7", "s3://BUCKET/PREFIX"});
  CheckError(kJob, {"data.train.inputs=s3://models/x.npy"}, {"data.train.inputs", "is a URL", "this machine"});
}

TEST_CASE("job: a set of data is inputs with labels, or tokens with their length", "[job]") {
  const std::string inputs = "train: {inputs: x.idx, labels: y.idx}";
  const auto with_train = [&](const std::string& train) { return With(inputs, "train: {" + train + "}"); };

  const JobSpec spec = Good(with_train("tokens: t.bin, sequence_length: 64"));

  CHECK(spec.data().train().tokens() == "/jobs/t.bin");
  CheckError(with_train("labels: y"), {}, {"job.yaml:4:", "data.train.inputs: is required", "or give tokens"});
  CheckError(with_train("tokens: t"), {}, {"data.train.sequence_length: is required with tokens"});
  CheckError(with_train("tokens: t, sequence_length: 0"), {}, {"data.train.sequence_length", "at least 1"});
  CheckError(with_train("tokens: t, sequence_length: 4, inputs: x"), {}, {"data.train.tokens: is given beside inputs"});
  CheckError(with_train("tokens: t, sequence_length: 4, labels: y"), {}, {"data.train.labels: with tokens"});
  CheckError(with_train("tokens: t, sequence_length: 4, format: npy"), {}, {"data.train.format: is for inputs"});
  CheckError(kJob, {"data.train.sequence_length=4"}, {"data.train.sequence_length: is for tokens"});
  CheckError(kJob, {"data.eval.labels=null", "data.eval.format=npy"}, {"data.eval.labels: is required"});

  const JobSpec table = Good(with_train("inputs: x.csv, label_field: 4, input_fields: [age, weight], delimiter: ;"));
  CHECK(table.data().train().input_fields_size() == 2);
  CHECK(table.data().train().label_field() == "4");
  CheckError(with_train("inputs: x, format: npz, labels: y"), {}, {"data.train.labels: such a file holds the labels"});
  CheckError(with_train("inputs: x, labels: y, label_field: z"), {},
             {"data.train.label_field: is for a file of several"});
  CheckError(with_train("tokens: t, sequence_length: 4, input_fields: z"), {},
             {"data.train.input_fields: is for files"});
  CheckError(with_train("inputs: x, format: npz, delimiter: x"), {},
             {"data.train.delimiter: applies only with format"});
  CheckError(with_train("inputs: x, delimiter: ab"), {}, {"data.train.delimiter: expected one character or tab"});
}

TEST_CASE("job: the resolved job is a job file of its own, equal to itself", "[job]") {
  const std::vector<std::vector<std::string>> variants = {
      {},
      {"train.optimizer={name: adamw, lr: 3e-4, beta2: 0.95}", "train.schedule={name: cosine, warmup: 0.125ep}"},
      {"train.reduction=fast", "train.on_nan=skip_step"},
      {"train.duration=1h30m", "checkpoint.every=250ms", "cluster.workers=2:3", "data.memory=1.5GB"},
      {"data.train.inputs=\"a b: #'\\\"\\t\\\\.idx\"", "train.clip_norm=0.1", "train.seed=18446744073709551615"},
      {"data.normalize={mean: [0.1, 0.2, 0.3], std: 0.33333333333333331}", "model.loss=\"output:yes\""},
      {"data.train.labels=null", "data.train.input_fields=[\"a: b\", \"3\"]", "data.train.delimiter=\";\""},
      {"resources={device: cuda, gpu_memory: 0.4}", "numerics.tf32=true"},
      {"resources.gpu_memory=1500000000B"},
      {"model.builtin={name: mlp, hidden: [64, 32], dropout: 0.5}", "name=true", "model.loss=huber"},
  };
  for (const auto& overrides : variants) {
    const JobSpec spec = Good(kJob, overrides);
    const std::string yaml = ResolvedYaml(spec);
    INFO(yaml);
    const JobSpec again = Good(yaml);
    CHECK(MessageDifferencer::Equals(spec, again));
    CHECK(ResolvedYaml(again) == yaml);
  }
}

// One edit of the job above and what its error must say.
struct Case {
  std::string from;
  std::string to;
  std::vector<std::string> expected;
};

void CheckErrors(const std::vector<Case>& cases) {
  for (const Case& c : cases) {
    INFO(c.from << " -> " << c.to);
    CheckError(With(c.from, c.to), {}, c.expected);
  }
}

TEST_CASE("job: unknown keys, wrong types and impossible values say where, and what was probably meant", "[job]") {
  CheckErrors({
      {"  duration:", "  duratoin:", {"/jobs/job.yaml:7:3: train.duratoin: unknown key", "did you mean 'duration'?"}},
      {"  duration: 10ep", "  lr: 3", {":7:3: train.lr: unknown key; did you mean 'train.optimizer.lr'?"}},
      {"  duration: 10ep", "  colour: 3", {"train.colour: unknown key; known here: seed, duration"}},
      {"name: small\n", "name: small\nname: other\n", {":2:1: name: the key is given twice"}},
      {"{lr: 0.1}", "{lr: 0.1, lr: 0.2}", {":9:24: train.optimizer.lr: the key is given twice"}},
      {"lr: 0.1", "lr: fast", {":9:19: train.optimizer.lr: expected a number, found 'fast'"}},
      {"lr: 0.1", "lr: nan", {"expected a number, found 'nan'"}},
      {"lr: 0.1", "lr: \"0.1\"", {"remove the quotes"}},
      {"lr: 0.1", "lr: [0.1]", {"expected a number, found a list"}},
      {"lr: 0.1", "lr:", {"train.optimizer.lr: has no value; expected a number"}},
      {"lr: 0.1", "lr: -1", {"must be at least 0, found -1"}},
      {"lr: 0.1", "lr: !!float 0.1", {"has the tag"}},
      {"lr: 0.1", "lr: 0.1, momentum: 1", {"must be below 1, found 1"}},
      {"lr: 0.1", "lr: 0.1, nesterov: yes", {"expected true or false, found 'yes'"}},
      {"lr: 0.1", "lr: 0.1, nesterov: true", {"nesterov: needs a momentum"}},
      {"lr: 0.1",
       "lr: 0.1, beta1: 0.5",
       {":9:24: train.optimizer.beta1: applies only with name: adam or adamw or lion or lamb, here it is sgd"}},
      {"lr: 0.1", "lr: 0.1, name: adafactor, beta2: 0.9", {"beta2: applies only with", "here it is adafactor"}},
      {"lr: 0.1", "lr: 0.1, name: adafactor, beta2_decay: 0.8", {"beta2_decay", "must be at most 0, found 0.8"}},
      {"lr: 0.1", "lr: 0.1, name: lamb, max_rms: 2", {"max_rms: applies only with name: adafactor, here it is lamb"}},
      {"lr: 0.1", "lr: 0.1, name: lamb, momentum: 0.9", {"momentum: applies only with name: sgd or rmsprop"}},
      {"lr: 0.1", "lr: 0.1, name: adam, eps: 1e-40", {"train.optimizer.eps", "must be at least 1e-30"}},
      {"lr: 0.1",
       "lr: 0.1, name: adm",
       {"expected one of sgd, adam, adamw, rmsprop, adagrad, lion, lamb, adafactor, found 'adm'; did you mean "
        "'adam'?"}},
      {"{lr: 0.1}", "{}", {"train.optimizer.lr: is required: a number"}},
      {"{lr: 0.1}", "sgd", {"train.optimizer: expected a section of keys, found 'sgd'"}},
      {"256", "1e3", {"expected an integer, found '1e3'"}},
      {"256", "99999999999999999999", {"expected an integer"}},
      {"256", "0", {"must be at least 1, found 0"}},
      {"256", "300", {"job.yaml:6:1: train.logical_shards: 8 shards do not divide global_batch_size 300"}},
      {"256", "256\n  logical_shards: 8192", {"must be at most 4096, found 8192"}},
      {"256", "256\n  clip_norm: 0", {"must be above 0"}},
      {"256", "256\n  on_nan: rollback", {"expected one of stop, skip_step, found 'rollback'"}},
      {"256", "256\n  schedule: {name: cosine, min_lr: 1}", {"min_lr: 1 is above train.optimizer.lr"}},
      {"256", "256\n  schedule: {warmup: 5m}", {"is given in ep, steps, samples, found 5m"}},
  });
}

TEST_CASE("job: all mistakes of a file are told at once, each once", "[job]") {
  const auto mistakes = [](const std::string& text, const std::vector<std::string>& overrides) {
    std::vector<std::string> lines;
    const absl::Status status = ParseJob(text, "job.yaml", overrides).status();
    for (const absl::string_view line : absl::StrSplit(status.message(), '\n')) lines.emplace_back(line);
    return lines;
  };
  const std::string text =
      "name: a b\n"
      "model: {builtin: {name: lenet, hidden: [3]}, loss: hubber}\n"
      "data:\n"
      "  train: {labels: y.idx, colour: red}\n"
      "train:\n"
      "  duration: 10\n"
      "  global_batch_sise: 256\n"
      "  optimizer: {lr: fast, name: adm, beta1: 0.5}\n"
      "  checkpoint: {every: 5s}\n"
      "  clip_norm: 0\n";

  const std::vector<std::string> found = mistakes(text, {"train.seed=-1", "bogus"});

  const std::vector<std::string> expected = {"job.yaml:4:26: data.train.colour: unknown key",
                                             "job.yaml:6:13: train.duration: expected an amount",
                                             "train.global_batch_sise: unknown key; did you mean 'global_batch_size'?",
                                             "train.optimizer.lr: expected a number",
                                             "train.optimizer.name: expected one of sgd",
                                             "train.checkpoint: unknown key; 'checkpoint' is a key of the file itself, "
                                             "not of 'train'",
                                             "train.clip_norm: must be above 0",
                                             "--set train.seed=-1: train.seed: ",
                                             "--set bogus: expected key=value",
                                             "job.yaml:1:1: name: expected letters",
                                             "model.builtin.hidden: applies only with name: mlp",
                                             "model.loss: expected softmax_cross_entropy",
                                             "data.train.inputs: is required"};
  CHECK(found.size() == expected.size());
  for (size_t i = 0; i < std::min(found.size(), expected.size()); ++i)
    CHECK_THAT(found[i], Catch::Contains(expected[i]));
  CHECK(mistakes(text, {"train.seed=1", "train.seed=1"}).size() == expected.size() - 2);
  CHECK(mistakes(With("{lr: 0.1}", "sgd"), {}).size() == 1);
  CHECK(mistakes(With("256", "0"), {"train.micro_batch=3"}).size() == 1);
  CHECK(mistakes(kJob, {"eval.bogus=1", "data.eval=null"}).size() == 1);
}

TEST_CASE("job: amounts, names, lists and structure are checked as well", "[job]") {
  CheckErrors({
      {"10ep", "10", {"expected an amount with its unit", "found '10'"}},
      {"10ep", "0ep", {"must be more than nothing"}},
      {"10ep", "auto", {"is given in ep, steps, samples, time, found auto"}},
      {"10ep", "0.0001ep", {"at most three decimals"}},
      {"10ep", "-3steps", {"expected an amount"}},
      {"10ep", "2h\n  schedule: {name: cosine}", {"this schedule ends with the job"}},
      {"name: small", "name: ../x", {"job.yaml:1:1: name: expected letters"}},
      {"name: lenet", "name: resnet", {"expected one of lenet, mlp, resnet18,"}},
      {"name: lenet", "name: lenet, hidden: [3]", {"hidden: applies only with name: mlp"}},
      {"name: lenet", "name: mlp, hidden: [3, 0]", {"hidden: must be at least 1"}},
      {"name: lenet", "name: mlp, hidden: []", {"found an empty list"}},
      {"name: lenet", "name: mlp, input: [1, 2, 3, 4, 5]", {"has 5 entries; at most 4"}},
      {"name: lenet", "name: mlp, input: [[1]]", {"expected an integer, found a list"}},
      {"  train: {inputs: x.idx, labels: y.idx}\n", "", {"data.train.inputs: is required"}},
      {"inputs: x.idx", "inputs: ''", {"data.train.inputs: is an empty path"}},
      {"inputs: x.idx", "inputs: x, sha256: AB", {"data.train.sha256: expected 64 lower-case"}},
      {"train:\n", "numerics: {plan: 12}\ntrain:\n", {"numerics.plan: unknown key"}},
      {"train:\n", "observe: {http: 29401}\ntrain:\n", {"observe.http: expected auto, off or HOST:PORT"}},
      {"train:\n", "observe: {http: 'a:70000'}\ntrain:\n", {"observe.http: expected auto, off or HOST:PORT"}},
      {"train:\n", "numerics: {mode: relaxed}\ntrain:\n", {"numerics.mode: expected one of strict, found 'relaxed'"}},
      {"train:\n", "cluster: {workers: '8:1'}\ntrain:\n", {"the fewest workers (8) are more than the most (1)"}},
      {"train:\n", "cluster: {workers: 0}\ntrain:\n", {"must be at least 1"}},
      {"train:\n", "cluster: {heartbeat_timeout: 5}\ntrain:\n", {"expected a time such as 2h"}},
      {"train:\n", "data: {}\ntrain:\n", {"data: the key is given twice"}},
      {"train:\n", "? [a]\n: 1\ntrain:\n", {"a key must be a plain name"}},
      {"train:\n", "train: [\n", {"not YAML"}},
      {"train:\n", "---\ntrain:\n", {"is not one YAML document"}},
      {"name: small\n", ", name: small\n", {"/jobs/job.yaml: is not one YAML document"}},
  });
  CheckError("", {}, {"the file is empty"});
  CheckError("- a\n- b\n", {}, {"expected a section of keys, found a list"});
  CheckError("name: &a [*a]\n", {}, {"name"});
  CheckError(std::string(2 << 20, '#'), {}, {"a job file has at most"});
  CheckError(std::string(5000, '['), {}, {"/jobs/job.yaml"});
}

TEST_CASE("job: rules across sections are held", "[job]") {
  CheckError(With("  eval: {inputs: tx.idx, labels: ty.idx}\n", ""), {"eval.every=1ep"},
             {"there is nothing to evaluate on"});
  CheckError(kJob, {"model.loss=mse", "eval.metric=accuracy"},
             {"--set eval.metric=accuracy: eval.metric: accuracy needs"});
  CheckError(kJob, {"model.loss=mse", "eval.metric=perplexity"}, {"eval.metric: perplexity is of cross entropies"});
  CheckError(With("  eval: {inputs: tx.idx, labels: ty.idx}\n", ""), {"checkpoint.keep_best=true"},
             {"checkpoint.keep_best: needs evaluations"});
  CheckError(kJob, {"eval.early_stop.patience=0"}, {"eval.early_stop.patience"});
  CheckError(kJob, {"eval.weights=ema"}, {"eval.weights: there is no average"});
  CheckError(kJob, {"train.ema.decay=1"}, {"train.ema.decay"});
  CHECK(Good(kJob, {"train.ema={}"}).eval().weights() == job::Eval::WEIGHTS_EMA);
  CHECK(Good(kJob, {"train.ema={}", "eval.weights=model"}).eval().weights() == job::Eval::WEIGHTS_MODEL);
  CHECK(Good(kJob).eval().weights() == job::Eval::WEIGHTS_MODEL);
  CheckError(kJob, {"model.loss=softmax"}, {"model.loss: expected softmax_cross_entropy, mse"});
  CheckError(kJob, {"model.loss=hubber"}, {"did you mean 'huber'?"});
  CheckError(kJob, {"data.normalize={mean: [1, 2], std: [1, 2, 3]}"}, {"has 3 entries and mean has 2"});
  CheckError(kJob, {"data.normalize.std=0"}, {"must be above 0"});
}

TEST_CASE("job: samples are mixed for class labels alone, and within passes of two or more", "[job]") {
  const JobSpec mixes = Good(kJob, {"data.augment={mixup: 0.2, cutmix: 1}"});
  CHECK(mixes.data().augment().mixup() == 0.2);
  CHECK(mixes.data().augment().cutmix() == 1);
  CHECK_FALSE(Good(kJob, {"data.augment={flip: true}"}).data().augment().has_mixup());
  for (const char* const key : {"mixup", "cutmix"}) {
    const std::string set = absl::StrCat("data.augment.", key, "=");
    const std::string place = absl::StrCat("data.augment.", key, ": ");
    CheckError(kJob, {set + "0.2", "model.loss=mse", "eval.metric=loss"}, {place + "mixes labels of classes"});
    CheckError(kJob, {set + "0.2", "model.loss=output:cost", "eval.metric=loss"}, {"model.loss is output:cost"});
    CheckError(kJob, {set + "0.2", "train.micro_batch=1"}, {place + "mixes the samples of a pass"});
    CheckError(kJob, {set + "0.2", "train.logical_shards=256"}, {place + "mixes the samples of a pass"});
    CHECK(Good(kJob, {set + "0.2", "train.logical_shards=128"}).train().logical_shards() == 128);
    CheckError(kJob, {set + "0"}, {place + "must be at least 0.01"});
    CheckError(kJob, {set + "1001"}, {place + "must be at most 1000"});
  }
}

TEST_CASE("job: --set goes through the same checks, and null takes a key back", "[job]") {
  CHECK(Good(kJob, {"train.optimizer.lr=1e-3"}).train().optimizer().lr() == 1e-3);
  CHECK(Good(kJob, {"train.seed=1", "train.seed=2"}).train().seed() == 2);
  CHECK(Good(kJob, {"train.optimizer={momentum: 0.5}"}).train().optimizer().lr() == 0.1);
  CHECK_FALSE(Good(kJob, {"data.eval=null"}).data().has_eval());
  const JobSpec lists = Good(kJob, {"model.builtin={name: mlp, hidden: [1, 2]}", "model.builtin.hidden=[3]"});
  CHECK(lists.model().builtin().hidden_size() == 1);

  CheckError(kJob, {"train.optimizer.lr=abc"}, {"--set train.optimizer.lr=abc: train.optimizer.lr: expected a number"});
  CheckError(kJob, {"train.optimiser.lr=1"}, {"'optimiser': unknown key; did you mean 'optimizer'?"});
  CheckError(kJob, {"train.seed.x=1"}, {"'seed' is an integer from 0 to 2^64 - 1 and has no keys"});
  CheckError(kJob, {"train.seed"}, {"expected key=value"});
  CheckError(kJob, {"=1"}, {"expected key=value"});
  CheckError(kJob, {"train..seed=1"}, {"unknown key"});
  CheckError(kJob, {"train.optimizer={lr: [}"}, {"not YAML"});
  CheckError(kJob, {"name=null"}, {"name: is required"});
}

TEST_CASE("job: a file that cannot be read is named", "[job]") {
  CHECK(LoadJob("/nowhere/job.yaml").status().code() == absl::StatusCode::kNotFound);
  CHECK_THAT(std::string(LoadJob("/nowhere/job.yaml").status().message()), Catch::Contains("/nowhere/job.yaml"));
  CHECK_THAT(std::string(LoadJob("/").status().message()), Catch::Contains("is a directory"));
}

// Calls `visit` for every key of the proto.
template <typename Visit>
void ForEachKey(const google::protobuf::Descriptor* type, const std::string& path, Visit visit) {
  for (int i = 0; i < type->field_count(); ++i) {
    const auto* field = type->field(i);
    const std::string key = path.empty() ? field->name() : path + "." + field->name();
    visit(key, field);
    if (job::IsSection(field) || job::IsSectionList(field)) ForEachKey(field->message_type(), key, visit);
  }
}

TEST_CASE("job: every default of the proto is one that a user could write", "[job]") {
  int defaults = 0;
  ForEachKey(JobSpec::descriptor(), "", [&](const std::string& key, const google::protobuf::FieldDescriptor* field) {
    INFO(key);
    const job::Key& options = job::KeyOf(field);
    CHECK_FALSE(options.doc().empty());
    CHECK((field->is_repeated() || field->has_presence()));
    std::vector<std::string> values;
    if (!options.default_().empty()) values.push_back(options.default_());
    for (const auto& conditional : options.default_when()) values.push_back(conditional.value());
    for (const std::string& value : values) {
      const auto* prototype =
          google::protobuf::MessageFactory::generated_factory()->GetPrototype(field->containing_type());
      std::unique_ptr<google::protobuf::Message> message(prototype->New());
      const absl::Status status = job::ReadValue(value, field, message.get());
      INFO(status);
      CHECK(status.ok());
      ++defaults;
    }
  });
  CHECK(defaults > 40);
}

TEST_CASE("job: a preset fills in what the job leaves out, and a misspelt one is named", "[job]") {
  const JobSpec spec = Good(kJob, {"model.builtin.name=gpt2", "model.builtin.preset=1558M", "model.builtin.width=800"});

  CHECK(spec.model().builtin().layers() == 48);
  CHECK(spec.model().builtin().heads() == 25);
  CHECK(spec.model().builtin().width() == 800);
  CHECK_FALSE(spec.model().builtin().has_classes());
  CheckError(kJob, {"model.builtin.name=gpt2", "model.builtin.preset=124m"},
             {"model.builtin.preset", "124M, 355M, 774M, 1558M", "found '124m'"});
  CheckError(kJob, {"model.builtin.name=gpt2", "model.builtin.classes=5"}, {"applies only with name: lenet or mlp"});
}

}  // namespace
}  // namespace lockstep
