// What a user can get wrong when starting something, on real processes: one clear message with place and remedy, the
// right exit code, nothing overwritten and nothing lost.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/status/exit_code.h"
#include "tests/e2e/commands.h"

namespace lockstep::e2e {
namespace {

using Catch::Matchers::Contains;
namespace fs = std::filesystem;

TEST_CASE("bad input: a command that is none ends with 64 and says how to get help", "[e2e]") {
  for (const Words& words : std::vector<Words>{{"frobnicate"},
                                               {"run"},
                                               {"run", kJob, "--bogus"},
                                               {"run", kJob, "--workers", "0"},
                                               {"run", kJob, "--kill-worker-every", "often"},
                                               {"chief", kJob, "--expected-workers", "-1"},
                                               {"model", "export", kJob, "-o", TempPath("x.onnx"), "--step", "-1"},
                                               {"worker"}}) {
    CAPTURE(words);
    const Result result = Run(words);
    CHECK(result.code == kExitUsage);
    CHECK_FALSE(result.output.empty());
  }
  CHECK_THAT(Run({"frobnicate"}).output, Contains("lockstep help"));
  CHECK_THAT(Run({"run", kJob, "--bogus"}).output, Contains("--bogus"));
  CHECK_THAT(Run({"run", kJob, "--kill-worker-every", "often"}).output, Contains("40steps"));
}

TEST_CASE("bad input: wrong settings are named with place and remedy before anything is made", "[e2e]") {
  const std::string directory = TempPath("never");
  const std::vector<BadSetting> cases = {
      {"train.optimiser=3", kExitBadJob, "optimiser", "did you mean 'optimizer'"},
      {"train.global_batch_size=many", kExitBadJob, "train.global_batch_size", "expected an integer"},
      {"train.global_batch_size=-1", kExitBadJob, "train.global_batch_size", "at least 1"},
      {"train.global_batch_size=63", kExitBadJob, "train.logical_shards", "choose a divisor"},
      {"model.loss=guess", kExitBadJob, "model.loss", "softmax_cross_entropy"},
      {"model.builtin.name=resnet", kExitBadJob, "model.builtin.name", "lenet, mlp"},
      {"nothing", kExitBadJob, "--set nothing", "expected key=value"},
  };
  for (const BadSetting& bad : cases) {
    CAPTURE(bad.set);
    for (const Words& words : std::vector<Words>{{"check", kJob}, {"run", kJob, "--dir", directory}}) {
      const Result result = Run(words, {bad.set});
      CHECK(result.code == bad.code);
      CHECK_THAT(result.output, Contains(bad.place) && Contains(bad.remedy));
    }
  }
  CHECK_FALSE(fs::exists(directory));
  const Result result = Run({"check", "/nonexistent/job.yaml"});
  CHECK(result.code == kExitBadJob);
  CHECK_THAT(result.output, Contains("/nonexistent/job.yaml") && Contains("No such file"));
}

TEST_CASE("bad input: a model, loss and labels that do not fit are refused and the file or setting is named", "[e2e]") {
  const Result shapes = Run({"check", kJob}, {kInputs, kLabels, "model.loss=mse"});
  CHECK(shapes.code == kExitBadJob);
  CHECK_THAT(shapes.output, Contains("target is F32 [16]") && Contains("`model.loss`"));

  const Result range = Run({"check", kJob}, {kInputs, kLabels, "model.builtin.classes=7"});
  CHECK(range.code == kExitBadData);
  CHECK_THAT(range.output, Contains("t10k-labels-idx1-ubyte.gz") && Contains("byte 8") && Contains("classes 0 to 6"));

  const std::string tokens = TempPath("tokens.csv");
  Write(tokens, "1,2,0\n3,12,1\n");
  const Result beyond =
      Run({"check", kJob},
          {"data.normalize=null", "data.train.labels=null", "data.train.inputs=" + tokens, "data.train.label_field=2",
           "model.builtin={name: bert, classes: 2, vocabulary: 10, input: [2], layers: 1, heads: 1, width: 4}"});
  CHECK(beyond.code == kExitBadData);
  CHECK_THAT(beyond.output, Contains(tokens) && Contains("line 2") && Contains("is 12") &&
                                Contains("0 to 9 (model.builtin.vocabulary)"));
}

TEST_CASE("bad input: missing, foreign and short data files are named, and no checkpoint is made", "[e2e]") {
  const std::string directory = TempPath("baddata");
  const std::string foreign = TempPath("foreign");
  const std::string cut = TempPath("cut");
  Write(foreign, "this is no array file");
  Write(cut, std::string("\0\0\x08\x03\0\0\0\x0a\0\0\0\x1c\0\0\0\x1c", 16) + std::string(100, 'x'));
  const std::vector<BadSetting> cases = {{"/nonexistent/images", kExitBadData, "/nonexistent/images", "No such file"},
                                         {foreign, kExitBadData, foreign, "magic"},
                                         {cut, kExitBadData, cut, "byte"}};
  for (const BadSetting& bad : cases) {
    CAPTURE(bad.set);
    const Result result = Run({"chief", kJob, "--dir", directory}, {absl::StrCat("data.train.inputs=", bad.set)});
    CHECK(result.code == bad.code);
    CHECK_THAT(result.output, Contains(bad.place) && Contains(bad.remedy));
    CHECK_FALSE(fs::exists(directory + "/checkpoints"));
  }
}

TEST_CASE("bad input: a port in use ends with 78 and says how to give another", "[e2e]") {
  const int holder = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  REQUIRE(bind(holder, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
  REQUIRE(listen(holder, 1) == 0);
  socklen_t size = sizeof address;
  getsockname(holder, reinterpret_cast<sockaddr*>(&address), &size);
  const std::string place = absl::StrCat("127.0.0.1:", ntohs(address.sin_port));

  const std::string directory = CopyOfFinishedJob("port");
  const Result result = Run({"chief", kJob, "--dir", directory, "--listen", place}, Settings());
  close(holder);

  CHECK(result.code == kExitBadJob);
  CHECK_THAT(result.output, Contains("cannot listen on " + place) && Contains("--listen HOST:PORT"));
  CHECK(Digest(directory) == Digest(FinishedJob()));
}

TEST_CASE("bad input: a directory that cannot be made or written ends with 74", "[e2e]") {
  const std::string file = TempPath("file");
  Write(file, "kept");
  for (const Words& words :
       std::vector<Words>{{"run", kJob, "--dir", file + "/job"}, {"chief", kJob, "--dir", file + "/job"}}) {
    const Result result = Run(words, Settings());
    CHECK(result.code == kExitStorage);
    CHECK_THAT(result.output, Contains(file + "/job") && Contains("--dir"));
  }
  CHECK(Read(file) == "kept");
}

TEST_CASE("bad input: callers without the token are refused and counted, and the worker ends with 77", "[e2e]") {
  unsetenv("LOCKSTEP_TOKEN");
  const std::string directory = TempPath("token");
  Watched chief("token", {"chief", kJob, "--dir", directory}, Settings());
  chief.WaitFor("listening on");
  const std::string address = directory + "/chief/address";
  const std::string wrong = TempPath("wrong");
  Write(wrong, "0123456789abcdef0123456789abcdef\n");

  const Result none = Run({"worker", "--chief-file", address, "--connect-timeout", "5"});
  CHECK(none.code == kExitBadToken);
  CHECK_THAT(none.output, Contains("--token-file") && Contains("LOCKSTEP_TOKEN"));

  chmod(wrong.c_str(), 0644);
  const Result open = Run({"worker", "--chief-file", address, "--token-file", wrong, "--connect-timeout", "5"});
  CHECK(open.code == kExitBadToken);
  CHECK_THAT(open.output, Contains(wrong) && Contains("chmod 600"));

  chmod(wrong.c_str(), 0600);
  const Result other = Run({"worker", "--chief-file", address, "--token-file", wrong, "--connect-timeout", "5"});
  CHECK(other.code == kExitBadToken);
  CHECK_THAT(other.output, Contains("token"));

  const Result made = Run({"token", "--dir", directory, "--role", "join"});
  REQUIRE(made.code == kExitDone);
  std::string mistyped = made.output;
  mistyped[20] = mistyped[20] == '0' ? '1' : '0';
  Write(wrong, mistyped);
  const Result damaged = Run({"worker", "--chief-file", address, "--token-file", wrong, "--connect-timeout", "5"});
  CHECK(damaged.code == kExitBadToken);
  CHECK_THAT(damaged.output, Contains("damaged") && Contains("lockstep token"));

  const Result reader = Run({"token", "--dir", directory, "--role", "read"});
  Write(wrong, reader.output);
  const Result joined = Run({"worker", "--chief-file", address, "--token-file", wrong, "--connect-timeout", "5"});
  CHECK(joined.code == kExitBadToken);
  CHECK_THAT(joined.output, Contains("'join'") && Contains("'read'"));
  const std::string port = Read(address).substr(0, Read(address).find_first_of(" \n"));
  const Result seen = Run({"status", "--chief", port, "--token-file", wrong});
  CHECK(seen.code == kExitDone);
  const Result stopped = Run({"stop", "--chief", port, "--token-file", wrong});
  CHECK(stopped.code == kExitBadToken);
  CHECK_THAT(stopped.output, Contains("'admin'"));

  // The chief may still be about to make it: it is waited for, but not in silence.
  Write(wrong, "");
  const Result empty = Run({"worker", "--chief-file", address, "--token-file", wrong, "--connect-timeout", "2"});
  CHECK(empty.code == kExitChiefUnreachable);
  CHECK_THAT(empty.output, Contains("waiting for the job's token") && Contains(wrong));

  const Result status = Run({"status", "--dir", directory});
  CHECK(status.code == kExitDone);
  CHECK_THAT(status.output, Contains("refused callers ") && !Contains("refused callers 0"));
  CHECK_THAT(status.output, Contains("ETA -  ") || Contains("ETA -\n"));
  CHECK(chief.process().Running());
  chief.process().Signal(SIGKILL);
}

TEST_CASE("bad input: a worker that is stopped while it waits for a token says so and ends with 75", "[e2e]") {
  Watched worker("early", {"worker", "--chief", "127.0.0.1:1", "--token-file", TempPath("no.token")});
  worker.WaitFor("waiting for the job's token");

  worker.process().Signal(SIGTERM);

  CHECK(worker.End() == Ended{kExitPreempted, 0});
  CHECK_THAT(worker.Output(), Contains("asked to leave before it joined") && !Contains("error:"));
}

TEST_CASE("bad input: a worker that listens on loopback for a chief elsewhere is told of --peer-host", "[e2e]") {
  const Result result = Run({"worker", "--chief", "192.0.2.1:1", "--peer-host", "127.0.0.1", "--connect-timeout", "1",
                             "--token-file", FinishedJob() + "/chief/token"});
  CHECK(result.code == kExitChiefUnreachable);
  CHECK_THAT(result.output, Contains("warn: the chief is at 192.0.2.1") && Contains("--peer-host"));
  CHECK(result.output.find("--peer-host") < result.output.find("exit 69"));
}

// Holds a variable of the environment, which processes inherit.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) { setenv(name, value, /*overwrite=*/1); }
  ~Variable() { unsetenv(name_); }

 private:
  const char* const name_;
};

TEST_CASE("bad input: a worker says what it took from a launcher's variables, and that one is none", "[e2e]") {
  const std::string token = FinishedJob() + "/chief/token";
  {
    const Variable config("TF_CONFIG",
                          R"({"cluster": {"chief": ["127.0.0.1:1"]}, "task": {"type": "worker", "index": 3}})");
    const Result taken = Run({"worker", "--connect-timeout", "1", "--token-file", token});
    CHECK(taken.code == kExitChiefUnreachable);
    CHECK_THAT(taken.output, Contains("by TF_CONFIG in the environment: --chief 127.0.0.1:1 --name worker-3") &&
                                 Contains("no chief answered at 127.0.0.1:1"));
  }
  const Variable config("TF_CONFIG", "{");
  const Result refused = Run({"worker", "--connect-timeout", "1", "--token-file", token});
  CHECK(refused.code == kExitUsage);
  CHECK_THAT(refused.output, Contains("TF_CONFIG is no JSON"));
  // Nothing is asked of it where all is given.
  CHECK(Run({"worker", "--chief", "127.0.0.1:1", "--name", "a", "--local-rank", "0", "--connect-timeout", "1",
             "--token-file", token})
            .code == kExitChiefUnreachable);
}

TEST_CASE("bad input: a worker that finds no chief ends with 69 and names the address", "[e2e]") {
  const Result result = Run(
      {"worker", "--chief", "127.0.0.1:1", "--connect-timeout", "1", "--token-file", FinishedJob() + "/chief/token"});
  CHECK(result.code == kExitChiefUnreachable);
  CHECK_THAT(result.output, Contains("no chief answered at 127.0.0.1:1") && Contains("is it running"));
}

TEST_CASE("bad input: an interrupt saves and ends with 75, a second one ends at once and loses nothing saved",
          "[e2e]") {
  const std::string directory = TempPath("interrupt");
  const Words words = {"run", kJob, "--workers", "1", "--dir", directory};
  const Words sets = Settings("100000steps", "50steps");
  {
    Watched run("interrupt", words, sets);
    run.WaitFor("saved step");
    run.process().Signal(SIGINT);
    CHECK(run.End() == Ended{kExitPreempted, 0});
    CHECK_THAT(run.Output(),
               Contains("saving first") && Contains("stop requested by SIG") && !Contains("done at step"));
  }
  const std::string saved = Digest(directory);
  {
    Watched run("twice", words, sets);
    run.WaitFor("listening on");
    const std::string holder = Read(directory + "/chief/lock");
    kill(std::atoi(holder.substr(holder.find("pid ") + 4).c_str()), SIGSTOP);
    run.process().Signal(SIGINT);
    run.WaitFor("press Ctrl-C again after a second");
    // Signals that come together are one: it takes a later one, while the chief is stopped and cannot end by itself.
    for (; run.process().Running(); poll(nullptr, 0, 10)) run.process().Signal(SIGINT);
    CHECK(run.End() == Ended{128 + SIGINT, 0});
    CHECK_THAT(run.Output(), Contains("steps after the newest checkpoint are lost"));
  }
  CHECK(Run({"checkpoint", "verify", directory}).code == kExitDone);
  CHECK(Digest(directory) == saved);
}

}  // namespace
}  // namespace lockstep::e2e
