#include "deploy/cli/worker_hosts.h"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace lockstep::cli {
namespace {

using Catch::Contains;

std::string Text(const absl::StatusOr<std::vector<WorkerHost>>& hosts) {
  if (!hosts.ok()) return std::string(hosts.status().message());
  return absl::StrJoin(*hosts, " ", [](std::string* out, const WorkerHost& host) {
    absl::StrAppend(out, host.host, "/", host.local_rank);
  });
}

std::string HostsFile(const std::string& content) {
  const std::string path = (std::filesystem::temp_directory_path() / absl::StrCat("hosts-", getpid())).string();
  std::ofstream(path) << content;
  return path;
}

TEST_CASE("hosts: a list names each host with its workers") {
  CHECK(Text(ReadHosts("a")) == "a/0");
  CHECK(Text(ReadHosts("a,me@b.example:2,c")) == "a/0 me@b.example/0 me@b.example/1 c/0");
}

TEST_CASE("hosts: a file has a line for each") {
  CHECK(Text(ReadHosts(HostsFile("# ours\n\na\n  b\tslots=2  # two GPUs\r\n"))) == "a/0 b/0 b/1");
}

TEST_CASE("hosts: what is wrong is named with its place") {
  CHECK_THAT(Text(ReadHosts("a,,b")), Contains("the hosts 'a,,b': '' is no host"));
  CHECK_THAT(Text(ReadHosts("a:0")), Contains("'0' is no number of workers"));
  CHECK_THAT(Text(ReadHosts("a,a")), Contains("a is there twice"));
  CHECK_THAT(Text(ReadHosts("-oProxyCommand=x")), Contains("is no host"));
  CHECK_THAT(Text(ReadHosts("./no/such/file")), Contains("there is no file ./no/such/file"));
  CHECK_THAT(Text(ReadHosts(HostsFile("a\nb 2\n"))), Contains(":2: a line is HOST or HOST slots=N, not 'b 2'"));
  CHECK_THAT(Text(ReadHosts(HostsFile("a slots=x\n"))), Contains(":1: 'x' is no number of workers"));
  CHECK_THAT(Text(ReadHosts(HostsFile("# none\n"))), Contains("names no host"));
}

// What a shell makes of the command with `input`.
std::string Shell(const std::string& command, const std::string& input) {
  const std::string path = (std::filesystem::temp_directory_path() / absl::StrCat("shell-", getpid())).string();
  const std::string in = absl::StrCat(path, ".in"), script = absl::StrCat(path, ".sh"),
                    out = absl::StrCat(path, ".out");
  std::ofstream(in) << input;
  std::ofstream(script) << command << "\n";
  REQUIRE(std::system(absl::StrCat("sh ", script, " < ", in, " > ", out).c_str()) == 0);
  std::ifstream file(out);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

TEST_CASE("hosts: the other side's shell runs the words as they are, with the token from its input and no other") {
  const std::string command =
      RemoteCommand({"sh", "-c", "echo \"$LOCKSTEP_TOKEN|$1|$2\"; cat", "sh", "it's $HOME", "*"});
  CHECK(Shell(command, "secret\nmore\n") == "secret|it's $HOME|*\nmore\n");
  CHECK_THAT(command, !Contains("secret"));
}

TEST_CASE("hosts: the words for a host name the worker's behind a mark") {
  const std::vector<std::string> words =
      SshWords({.self = "/bin/lockstep", .ssh = "ssh -p 2222", .host = "a", .directory = "runs/x", .cause_fd = 3},
               {"lockstep", "worker", "--name", "worker-0"});
  CHECK(absl::StrJoin(words, " ") ==
        "/bin/lockstep ssh-worker --host a --ssh ssh -p 2222 --dir runs/x --cause-fd 3 -- lockstep worker --name "
        "worker-0");
}

}  // namespace
}  // namespace lockstep::cli
