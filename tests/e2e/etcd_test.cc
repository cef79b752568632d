// Chiefs that a real etcd knows of: a standby follows within seconds, wherever it runs, and workers find the chief
// there.
#include <signal.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/checkpoint_format/naming.h"
#include "common/etcd/etcd_client.h"
#include "common/etcd/owner_key.h"
#include "common/etcd/real_etcd.h"
#include "common/status/exit_code.h"
#include "tests/e2e/commands.h"
#include "tests/e2e/standby_job.h"

namespace lockstep::e2e {
namespace {

using Catch::Contains;

// A chief with two workers that ask etcd for it, and a chief that stands by.
struct WithEtcd {
  explicit WithEtcd(const std::string& name, const std::string& certificates = "")
      : etcd(TempPath(name + ".etcd"), certificates),
        url(etcd.Url("jobs/" + name)),
        directory(TempPath(name)),
        first(name + ".first", {"chief", kJob, "--dir", directory, "--expected-workers", "2", "--etcd", url},
              StandbyJob::sets) {
    first.WaitFor("listening on");
    standby.emplace(name + ".standby", Words{"chief", kJob, "--dir", directory, "--standby", "--etcd", url},
                    StandbyJob::sets);
    standby->WaitFor("the chief of term 1 has the job");
    for (int i = 0; i < 2; ++i) {
      const std::string worker = absl::StrCat("worker-", i);
      const std::string token = absl::StrCat(directory, "/", layout::kToken);
      workers.push_back(std::make_unique<Watched>(
          absl::StrCat(name, ".", worker), Words{"worker", "--etcd", url, "--token-file", token, "--name", worker}));
    }
  }

  void CheckDone() {
    StandbyJob::CheckDone(directory, *standby, workers);
    // It ended with the chief. That of the first one may last: etcd lets leases run anew when it starts.
    CHECK(EtcdClient::Open(url).value()->Get(OwnerKey(2)).value() == std::nullopt);
  }

  RealEtcd etcd;
  const std::string url;
  const std::string directory;
  Watched first;
  std::optional<Watched> standby;
  std::vector<std::unique_ptr<Watched>> workers;
};

TEST_CASE("etcd: a chief that stands still loses its lease and is replaced, and does no harm when it wakes up",
          "[e2e]") {
  const bool tls = GENERATE(false, true);
  const std::string certificates = TempPath("certificates");
  if (tls) MakeCertificates(certificates);
  if (tls) UseCertificates(certificates);
  WithEtcd job(tls ? "paused-tls" : "paused", tls ? certificates : "");
  job.first.WaitFor("saved step");
  job.first.process().Signal(SIGSTOP);
  job.standby->WaitFor("the lease of the chief of term 1 in etcd has ended");
  job.standby->WaitFor("saved step");

  job.first.process().Signal(SIGCONT);

  CHECK(job.first.End() == Ended{kExitFenced, 0});
  job.CheckDone();
}

TEST_CASE("etcd: it may go and come back; a chief that is killed meanwhile is followed all the same", "[e2e]") {
  const bool comes_back = GENERATE(false, true);
  WithEtcd job(comes_back ? "back" : "away");
  job.first.WaitFor("saved step");
  job.etcd.Kill();
  job.first.WaitFor("etcd does not know of this chief");
  job.standby->WaitFor("going by the log meanwhile");
  if (comes_back) {
    job.etcd.Start();
    job.first.WaitFor("etcd knows of this chief again");
  }

  job.first.process().Signal(SIGKILL);

  job.standby->WaitFor("taking the job over");
  if (!comes_back) job.etcd.Start();  // workers ask it for the new chief
  job.CheckDone();
}

TEST_CASE("etcd: what is wrong with its URL is said before anything is begun", "[e2e]") {
  const Words command = GENERATE(Words{"chief", kJob, "--dir", TempPath("bad-url")}, Words{"worker"});
  Words words = command;
  words.insert(words.end(), {"--etcd", "http://127.0.0.1:2379"});
  const Result result = Run(words);
  CHECK(result.code == kExitUsage);
  CHECK_THAT(result.output, Contains("no prefix") && Contains("https://etcd.example:2379/lockstep/mnist"));
}

}  // namespace
}  // namespace lockstep::e2e
