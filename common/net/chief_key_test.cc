#include "common/net/chief_key.h"

#include <catch2/catch.hpp>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace lockstep {
namespace {

using Catch::Contains;

const std::string kLongToken = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

TEST_CASE("chief key: secrets and pin are those of the formulas in any version", "[net]") {
  // By a program of its own: HMAC-SHA512, and the multiple of P-256's generator in plain integers.
  const CallerKey key = CallerKeyOf(kLongToken, Role::kJoin).value();

  CHECK(key.secret == "8e1880e0f163f1dbf70fc9c850aa5f60b937e780aaea162a799857c3b0c5bff0");
  CHECK(key.pin == "73b82a545a016722058d21c64357d0af7a4343b93c4920c7222077a7f535a805");
}

TEST_CASE("chief key: every role and every token has a secret of its own, and a token one pin", "[net]") {
  std::set<std::string> secrets = {kLongToken};
  std::set<std::string> pins;
  for (const std::string& token : {kLongToken, kLongToken + "0", std::string("token")}) {
    for (const Role role : {Role::kRead, Role::kJoin, Role::kAdmin}) {
      const CallerKey key = CallerKeyOf(token, role).value();
      CHECK(secrets.insert(key.secret).second);
      pins.insert(key.pin);
      CHECK(RoleOfSecret(token, key.secret) == role);
      CHECK(RoleOfSecret(token + "x", key.secret) == std::nullopt);
    }
    CHECK(RoleOfSecret(token, token) == std::nullopt);
    CHECK(RoleOfSecret(token, "") == std::nullopt);
  }
  CHECK(pins.size() == 3);
}

TEST_CASE("chief key: a role credential has one role's secret and the pin, and nothing of the token", "[net]") {
  for (const Role role : {Role::kRead, Role::kJoin, Role::kAdmin}) {
    const std::string credential = RoleCredential(kLongToken, role).value();
    const CallerKey whole = CallerKeyOf(kLongToken, role).value();
    CHECK_FALSE(absl::StrContains(credential, kLongToken));

    const CallerKey key = CallerKeyOf(credential, Role::kAdmin).value();

    CHECK(key.role == role);
    CHECK(key.secret == whole.secret);
    CHECK(key.pin == whole.pin);
    CHECK_FALSE(RoleCredential(credential, Role::kAdmin).ok());
  }
}

TEST_CASE("chief key: holders of a credential ask for a server name that others cannot know", "[net]") {
  const std::vector<std::string> names = ServerNames(kLongToken);
  const std::set<std::string> different(names.begin(), names.end());
  CHECK(different.size() == 3);
  for (const Role role : {Role::kRead, Role::kJoin, Role::kAdmin}) {
    const CallerKey key = CallerKeyOf(kLongToken, role).value();
    const std::string name = ServerNameOf(key.secret);
    CHECK(different.contains(name));
    CHECK_FALSE(absl::StrContains(name, key.secret.substr(0, 8)));
    CHECK_FALSE(absl::StrContains(name, key.pin.substr(0, 8)));
    CHECK(name == ServerNameOf(CallerKeyOf(RoleCredential(kLongToken, role).value(), role).value().secret));
  }
  for (const std::string& name : ServerNames("other")) CHECK_FALSE(different.contains(name));
  // By a program of its own, as above.
  CHECK(ServerNameOf(std::string(64, '0')) == "303d57c6b21bcee9fb379a3c4e025302.chief.lockstep");
}

TEST_CASE("chief key: a damaged role credential is refused, and an empty token", "[net]") {
  const std::string credential = RoleCredential(kLongToken, Role::kJoin).value();
  for (const std::string& damaged : {credential.substr(0, credential.size() - 1), credential + "0",
                                     absl::StrCat("lockstep-guest", credential.substr(13)),
                                     std::string("lockstep-join"), std::string("lockstep-")}) {
    INFO(damaged);
    const absl::Status refused = CallerKeyOf(damaged, Role::kJoin).status();
    CHECK(absl::IsInvalidArgument(refused));
    CHECK_THAT(std::string(refused.message()), Contains("lockstep token"));
  }
  for (const size_t at : {credential.find('-', 14) - 1, credential.rfind('-') - 1, credential.size() - 1}) {
    std::string mistyped = credential;  // in the secret, the pin, the check
    mistyped[at] = mistyped[at] == '0' ? '1' : '0';
    CHECK(absl::IsInvalidArgument(CallerKeyOf(mistyped, Role::kJoin).status()));
  }
  CHECK(absl::IsInvalidArgument(CallerKeyOf("", Role::kRead).status()));
}

TEST_CASE("chief key: the certificate has the pin of the token", "[net]") {
  const ChiefIdentity identity = ChiefIdentityOf(kLongToken).value();

  CHECK(PinOf(identity.certificate) == CallerKeyOf(kLongToken, Role::kRead).value().pin);
  CHECK(PinOf(ChiefIdentityOf("other").value().certificate) != PinOf(identity.certificate));
  CHECK(PinOf("no certificate").empty());
  CHECK(PinOf("").empty());
}

}  // namespace
}  // namespace lockstep
