// An S3ObjectStore on a FakeS3, for tests. Its clock advances only when it pauses.
//
// Threading: thread-safe.
#ifndef LOCKSTEP_COMMON_OBJECT_STORE_S3_ON_FAKE_H_
#define LOCKSTEP_COMMON_OBJECT_STORE_S3_ON_FAKE_H_

#include <memory>
#include <optional>
#include <string>

#include "common/clock/clock.h"
#include "common/object_store/fake_s3.h"
#include "common/object_store/s3_object_store.h"

namespace lockstep {

// The keys of `fake` as environment variables.
inline Environment EnvironmentOf(const FakeS3& fake) {
  return [keys = fake.keys](const char* name) -> std::optional<std::string> {
    if (absl::string_view(name) == "AWS_ACCESS_KEY_ID") return keys.access_key;
    if (absl::string_view(name) == "AWS_SECRET_ACCESS_KEY") return keys.secret_key;
    return std::nullopt;
  };
}

struct S3OnFake {
  // `carrier` transports requests to the fake; null: they reach it directly.
  explicit S3OnFake(HttpTransport* carrier = nullptr, const std::string& host = "fake") {
    S3Patience patience;
    patience.steady_clock = [this] { return clock.Now(); };
    patience.pause = [this](absl::Duration duration) { clock.Advance(duration); };
    patience.wall_clock = [this] { return clock.Now(); };
    credentials = std::make_unique<S3CredentialsSource>(EnvironmentOf(fake), &fake, [this] { return clock.Now(); });
    store = std::make_unique<S3ObjectStore>(S3Url{fake.bucket, "runs/7"},
                                            S3Endpoint{"http", host, "/" + fake.bucket, fake.region},
                                            carrier == nullptr ? &fake : carrier, credentials.get(), patience);
  }

  FakeS3 fake;
  ManualClock clock{absl::FromUnixSeconds(1'700'000'000)};
  std::unique_ptr<S3CredentialsSource> credentials;
  std::unique_ptr<S3ObjectStore> store;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_OBJECT_STORE_S3_ON_FAKE_H_
