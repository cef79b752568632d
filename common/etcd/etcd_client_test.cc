#include "common/etcd/etcd_client.h"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/clock/clock.h"
#include "common/etcd/owner_key.h"
#include "common/etcd/real_etcd.h"

namespace lockstep {
namespace {

using Catch::Contains;

std::string Folder(const std::string& name) { return absl::StrCat(std::getenv("TEST_TMPDIR"), "/", name); }

RealEtcd& Server() {
  static RealEtcd server(Folder("etcd"));
  return server;
}

std::unique_ptr<EtcdClient> Client(const std::string& prefix) { return EtcdClient::Open(Server().Url(prefix)).value(); }

TEST_CASE("etcd: a key goes with its lease, and what keeps that alive learns of its end", "[etcd]") {
  const auto client = Client("lease");
  const int64_t lease = client->Grant(absl::Seconds(3)).value();
  REQUIRE(client->Put("chief", "10.0.0.1:7", lease).ok());
  CHECK(client->Get("chief").value() == "10.0.0.1:7");
  CHECK(client->KeepAlive(lease).ok());
  SECTION("given back") {
    REQUIRE(client->Revoke(lease).ok());
    CHECK(client->Get("chief").value() == std::nullopt);
    CHECK(client->Revoke(lease).ok());
  }
  SECTION("left alone") {
    const absl::Time until = SteadyNow() + absl::Minutes(1);
    while (client->Get("chief").value().has_value()) REQUIRE(SteadyNow() < until);
  }
  CHECK(absl::IsNotFound(client->KeepAlive(lease)));
  CHECK(absl::IsNotFound(client->Put("chief", "10.0.0.1:7", lease)));
}

TEST_CASE("etcd: the last of several keys is that of the newest term, of one job alone", "[etcd]") {
  const auto client = Client("jobs/one");
  const int64_t lease = client->Grant(absl::Seconds(60)).value();
  CHECK(client->GetLast(kOwnerKeys).value() == std::nullopt);
  for (const int64_t term : {2, 10, 9}) REQUIRE(client->Put(OwnerKey(term), absl::StrCat("of ", term), lease).ok());
  REQUIRE(client->Put("chiefs", "beyond", lease).ok());
  REQUIRE(Client("jobs/one2")->Put(OwnerKey(11), "of another job", lease).ok());

  CHECK(client->GetLast(kOwnerKeys).value() == "of 10");
  CHECK(client->Get(OwnerKey(9)).value() == "of 9");
}

TEST_CASE("etcd: while one endpoint is down another one answers, and none is an outage", "[etcd]") {
  RealEtcd second(Folder("second"));
  const std::string down = second.endpoint();
  second.Kill();
  const auto client = EtcdClient::Open(absl::StrCat("http://", down, ",", Server().endpoint(), "/two")).value();
  const int64_t lease = client->Grant(absl::Seconds(60)).value();
  REQUIRE(client->Put("a", "b", lease).ok());
  CHECK(client->KeepAlive(lease).ok());

  const auto nobody = EtcdClient::Open(absl::StrCat("http://", down, "/two")).value();
  CHECK(absl::IsUnavailable(nobody->Get("a").status()));
  CHECK_THAT(std::string(nobody->KeepAlive(lease).message()), Contains("etcd does not answer") && Contains(down));
  second.Start();
  const absl::Time until = SteadyNow() + absl::Minutes(1);
  while (!nobody->Get("a").ok()) REQUIRE(SteadyNow() < until);
}

TEST_CASE("etcd: with TLS a client shows its certificate, and talks to nobody whom its authority does not vouch for",
          "[etcd]") {
  const std::string certificates = Folder("certificates"), others = Folder("others");
  MakeCertificates(certificates);
  MakeCertificates(others);
  UseCertificates(certificates);
  const RealEtcd server(Folder("tls"), certificates);
  const auto client = EtcdClient::Open(server.Url("tls")).value();
  REQUIRE(client->Put("a", "b", 0).ok());
  CHECK(client->Get("a").value() == "b");

  SECTION("no certificate") {
    unsetenv("ETCDCTL_CERT");
    unsetenv("ETCDCTL_KEY");
  }
  SECTION("another authority") { setenv("ETCDCTL_CACERT", (others + "/ca.crt").c_str(), 1); }
  SECTION("a certificate of another authority") {
    setenv("ETCDCTL_CERT", (others + "/client.crt").c_str(), 1);
    setenv("ETCDCTL_KEY", (others + "/client.key").c_str(), 1);
  }
  CHECK_FALSE(EtcdClient::Open(server.Url("tls")).value()->Get("a").ok());

  unsetenv("ETCDCTL_KEY");
  setenv("ETCDCTL_CERT", (certificates + "/client.crt").c_str(), 1);
  CHECK_THAT(std::string(EtcdClient::Open(server.Url("tls")).status().message()), Contains("one alone is set"));
  setenv("ETCDCTL_CACERT", "/no/such/file", 1);
  CHECK(absl::IsNotFound(EtcdClient::Open(server.Url("tls")).status()));
  setenv("ETCDCTL_CACERT", certificates.c_str(), 1);
  CHECK_THAT(std::string(EtcdClient::Open(server.Url("tls")).status().message()), Contains("Is a directory"));
  setenv("ETCDCTL_USER", "root:secret", 1);
  CHECK_THAT(std::string(EtcdClient::Open(server.Url("tls")).status().message()), Contains("ETCDCTL_USER"));
  for (const char* name : {"ETCDCTL_USER", "ETCDCTL_CACERT", "ETCDCTL_CERT"}) unsetenv(name);
}

}  // namespace
}  // namespace lockstep
