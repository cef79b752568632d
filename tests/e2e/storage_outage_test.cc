// A file system that takes nothing for a while, on real processes: nothing is lost, the job says what it needs, and it
// goes on by itself.
#include <sys/mount.h>

#include <iostream>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "common/status/exit_code.h"
#include "tests/e2e/commands.h"

namespace lockstep::e2e {
namespace {

using Catch::Matchers::Contains;
namespace fs = std::filesystem;

// A small file system of its own, unmounted when dropped.
class SmallDisk {
 public:
  explicit SmallDisk(const std::string& name) : path_(TempPath(name)), fill_(path_ + "/fill") {
    fs::create_directories(path_);
    mounted_ = mount("tmpfs", path_.c_str(), "tmpfs", 0, kSize) == 0;
    if (!mounted_) std::cout << "SKIPPED: '" << name << "' needs the right to mount a tmpfs\n";
  }
  ~SmallDisk() {
    if (mounted_) umount2(path_.c_str(), MNT_DETACH);
  }
  bool mounted() const { return mounted_; }
  const std::string& path() const { return path_; }
  void Fill() const { std::ofstream(fill_, std::ios::binary) << std::string(8 << 20, 'x') << std::flush; }
  // Leaves room for small files, but not for a checkpoint.
  void FillAlmost() const {
    Fill();
    fs::resize_file(fill_, fs::file_size(fill_) - (64 << 10));
  }
  void Free() const { fs::remove(fill_); }
  // REQUIRES: nobody has a file of it open for writing.
  bool MakeReadOnly(bool read_only) const {
    return mount("tmpfs", path_.c_str(), "tmpfs", MS_REMOUNT | (read_only ? MS_RDONLY : 0), kSize) == 0;
  }

 private:
  static constexpr char kSize[] = "size=6m";
  const std::string path_;
  const std::string fill_;
  bool mounted_ = false;
};

// A chief and two workers that keep their job on a small file system.
class JobOnSmallDisk {
 public:
  JobOnSmallDisk(const std::string& name, const Words& settings)
      : disk(name), directory(disk.path() + "/job"), name_(name), settings_(settings) {}

  Watched StartChief(const std::string& log) const {
    return Watched(absl::StrCat(name_, ".", log), {"chief", kJob, "--dir", directory, "--expected-workers", "2"},
                   settings_);
  }
  Watched StartWorker(int index) const {
    const std::string worker = absl::StrCat("worker-", index);
    return Watched(absl::StrCat(name_, ".", worker), {"worker", "--chief-file", directory + "/chief/address",
                                                      "--token-file", directory + "/chief/token", "--name", worker});
  }
  // Of the same job with one worker on a disk with room.
  std::string DigestUndisturbed() const {
    const std::string elsewhere = TempPath(name_ + ".undisturbed");
    REQUIRE(Run({"run", kJob, "--workers", "1", "--dir", elsewhere}, settings_).code == kExitDone);
    return Digest(elsewhere);
  }

  const SmallDisk disk;
  const std::string directory;

 private:
  const std::string name_;
  const Words settings_;
};

int LinesWith(const std::string& text, const std::string& part) {
  int lines = 0;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) lines += absl::StrContains(line, part) ? 1 : 0;
  return lines;
}

TEST_CASE("storage: a disk that is full until the last step costs no step, and the job ends when it has room",
          "[e2e]") {
  const JobOnSmallDisk job("full", Settings("400steps", "40steps"));
  if (!job.disk.mounted()) return;
  Watched chief = job.StartChief("chief");
  chief.WaitFor("listening on");
  Watched first = job.StartWorker(0);
  Watched second = job.StartWorker(1);
  chief.WaitFor("saved step");
  job.disk.Fill();

  chief.WaitFor("the workers wait with their state in memory");
  const std::string said = chief.Output();
  CHECK_THAT(said,
             Contains("needed") && Contains("available") && Contains(job.directory) && Contains("Free some space"));
  CHECK(LinesWith(said, "Nothing is lost") <= 2);
  CHECK(LinesWith(said, "could not send share") == 0);
  CHECK(LinesWith(said, "error") <= 2);
  CHECK(chief.process().Running());
  CHECK(first.process().Running());
  CHECK(second.process().Running());
  job.disk.Free();

  CHECK(chief.End() == Ended{});
  CHECK_THAT(chief.Output(), Contains("the storage works again") && Contains("done at step 400"));
  CHECK(first.End() == Ended{});
  CHECK(second.End() == Ended{});
  CHECK(Run({"checkpoint", "verify", job.directory}).code == kExitDone);
  CHECK(Digest(job.directory) == job.DigestUndisturbed());
}

TEST_CASE("storage: training goes on while the disk is full, and its newest state is saved when it has room", "[e2e]") {
  const JobOnSmallDisk job("going", Settings("100000steps", "40steps"));
  if (!job.disk.mounted()) return;
  Watched chief = job.StartChief("chief");
  chief.WaitFor("listening on");
  Watched first = job.StartWorker(0);
  Watched second = job.StartWorker(1);
  chief.WaitFor("saved step");

  job.disk.Fill();
  chief.WaitFor("training goes on");
  job.disk.Free();
  chief.WaitFor("the storage works again");
  chief.process().Signal(SIGINT);

  CHECK(chief.End() == Ended{kExitPreempted, 0});
  CHECK(first.End() == Ended{kExitPreempted, 0});
  CHECK(second.End() == Ended{kExitPreempted, 0});
  CHECK(LinesWith(chief.Output(), " ends after step") == 0);  // no generation broke of it
  CHECK(Run({"checkpoint", "verify", job.directory}).code == kExitDone);
}

TEST_CASE(
    "storage: a chief that is started again on a read-only file system waits for it; its workers keep their state",
    "[e2e]") {
  const JobOnSmallDisk job("readonly", Settings("400steps", "40steps"));
  if (!job.disk.mounted()) return;
  Watched killed = job.StartChief("killed");
  killed.WaitFor("listening on");
  Watched first = job.StartWorker(0);
  Watched second = job.StartWorker(1);
  killed.WaitFor("saved step");
  killed.process().Signal(SIGKILL);
  CHECK(killed.End() == Ended{0, SIGKILL});
  REQUIRE(job.disk.MakeReadOnly(true));

  Watched stopped = job.StartChief("stopped");
  stopped.WaitFor("It is tried again");
  stopped.process().Signal(SIGTERM);
  CHECK(stopped.End() == Ended{kExitPreempted, 0});
  Watched chief = job.StartChief("chief");
  chief.WaitFor("It is tried again");
  CHECK_THAT(chief.Output(), Contains("Read-only file system") && Contains(job.directory));
  REQUIRE(job.disk.MakeReadOnly(false));

  CHECK(chief.End() == Ended{});
  CHECK(LinesWith(chief.Output(), "error") == 1);
  CHECK(first.End() == Ended{});
  CHECK(second.End() == Ended{});
  CHECK(Digest(job.directory) == job.DigestUndisturbed());
}

TEST_CASE("storage: a chief waits until there is room for its address file, and goes on", "[e2e]") {
  const SmallDisk disk("address");
  if (!disk.mounted()) return;
  const std::string file = disk.path() + "/address";
  disk.Fill();
  Watched chief("address.chief", {"chief", kJob, "--dir", TempPath("address.job"), "--address-file", file}, Settings());

  chief.WaitFor("It is tried again");
  CHECK_THAT(chief.Output(), Contains("--address-file") && Contains(file) && !Contains("listening on"));
  disk.Free();
  chief.WaitFor("listening on");

  CHECK(Read(file) == Read(TempPath("address.job") + "/chief/address").substr(0, Read(file).size()));
  chief.process().Signal(SIGTERM);
  CHECK(chief.End() == Ended{kExitPreempted, 0});
}

TEST_CASE("storage: a job that begins without room for a checkpoint is told at once, however often it is started",
          "[e2e]") {
  const SmallDisk disk("new");
  if (!disk.mounted()) return;
  disk.FillAlmost();
  const std::string directory = disk.path() + "/job";
  Words sets = Settings();
  sets.push_back("cluster.chief_timeout=2s");

  for (const std::string mark : {"none", "left by an earlier start"}) {
    CAPTURE(mark);
    if (mark != "none") {
      fs::create_directories(directory);
      Write(directory + "/LOCKSTEP",
            "{\"format_version\": 1, \"job_id\": \"fashion-mnist-short\", \"lineage\": \"line\"}");
    }
    for (const std::string command : {"chief", "check", "chief"}) {
      CAPTURE(command);
      const Result result = Run({command, kJob, "--dir", directory}, sets);
      INFO(result.output);
      CHECK(result.code == kExitStorage);
      CHECK_THAT(result.output, Contains(" bytes free, and one checkpoint takes ") && Contains(disk.path()));
      CHECK_THAT(result.output, !Contains("It is tried again"));
    }
    CHECK(fs::exists(directory) == (mark != "none"));
  }
}

}  // namespace
}  // namespace lockstep::e2e
