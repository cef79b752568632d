// How fast a checkpoint becomes durable, against `dd … conv=fsync` of as many bytes in the same directory, in turns.
// Each of two senders' shares comes in chunks with their CRC, on a thread of its own as in the chief; the sink checks
// them, digests and writes; the manifest is published: everything between the first byte at the chief and the commit.
// Prints one JSON object, medians.
//
//   shard_write_bench --dir DIR [--mib N] [--rounds N]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "chief/checkpoint/checkpoint_test_util.h"
#include "common/storage/local/local_storage.h"

namespace lockstep::chief {
namespace {

using BenchClock = std::chrono::steady_clock;

constexpr size_t kChunk = size_t{1} << 20;
constexpr int kTensors = 8;
constexpr int kShares = 2;

struct Arguments {
  std::string directory;
  int64_t mib = 512;
  int rounds = 3;
};

// What the senders hold: the streams of all shares, in chunks with their checks.
struct ShardToWrite {
  struct Chunk {
    int share;
    absl::string_view bytes;
    uint32_t crc32c;
  };
  SnapshotId id;
  std::vector<CheckpointTensor> layout;
  std::vector<std::string> streams;
  std::vector<ShareProof> proofs;
  std::vector<Chunk> chunks;
};

double Seconds(BenchClock::time_point from) { return std::chrono::duration<double>(BenchClock::now() - from).count(); }

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

absl::StatusOr<ShardToWrite> MakeUpload(const Arguments& arguments) {
  ShardToWrite upload;
  const int64_t values = arguments.mib * (int64_t{1} << 20) / kTensors / 4;
  std::vector<std::string> tensors;
  uint64_t random = 1;
  for (int t = 0; t < kTensors; ++t) {
    upload.layout.push_back({std::string(kModelGroup), {absl::StrCat("weight", t), DType::kF32, {values}}});
    std::string& bytes = tensors.emplace_back(static_cast<size_t>(values) * 4, '\0');
    for (size_t i = 0; i + 8 <= bytes.size(); i += 8) {
      random = random * 6364136223846793005u + 1442695040888963407u;
      std::memcpy(&bytes[i], &random, 8);
    }
  }
  std::vector<TensorBytes> views;
  for (size_t t = 0; t < tensors.size(); ++t) views.push_back({&upload.layout[t].spec, tensors[t]});
  const StateDigests digests = DigestState(views, 1);
  upload.id = {"line-1", 1, digests.state};
  LS_ASSIGN_OR_RETURN(const SharePlan plan, PlanShares(upload.layout, kShares));
  for (const auto& share : plan.shares) {
    upload.proofs.push_back(ProofOf(digests, share));
    std::string& stream = upload.streams.emplace_back();
    for (const SharePiece& piece : share.pieces) {
      stream += tensors[piece.tensor];
      tensors[piece.tensor].clear();
      tensors[piece.tensor].shrink_to_fit();
    }
  }
  for (int share = 0; share < kShares; ++share) {
    const absl::string_view stream = upload.streams[static_cast<size_t>(share)];
    for (size_t at = 0; at < stream.size(); at += kChunk) {
      const absl::string_view bytes = stream.substr(at, kChunk);
      upload.chunks.push_back({share, bytes, Crc32c(bytes)});
    }
  }
  return upload;
}

absl::StatusOr<double> Save(const std::string& directory, const ShardToWrite& upload) {
  LS_ASSIGN_OR_RETURN(auto storage, LocalStorage::Create(directory));
  LS_ASSIGN_OR_RETURN(auto chief, SmallChief::Start(*storage));
  const auto start = BenchClock::now();
  LS_ASSIGN_OR_RETURN(std::shared_ptr<ShardSink> sink,
                      ShardSink::Open(*chief->hold, upload.id, upload.layout, kShares));
  std::vector<absl::Status> sent(kShares);
  std::vector<std::thread> senders;
  for (int share = 0; share < kShares; ++share) {
    senders.emplace_back([&, share] {
      const ShareProof& proof = upload.proofs[static_cast<size_t>(share)];
      auto receiver =
          ShareReceiver::Begin(sink, static_cast<uint32_t>(share), TensorDigestBytes(proof), LeafDigestBytes(proof));
      sent[share] = receiver.status();
      for (const ShardToWrite::Chunk& chunk : upload.chunks) {
        if (chunk.share == share && sent[share].ok()) sent[share] = receiver->Add(chunk.bytes, chunk.crc32c);
      }
    });
  }
  for (std::thread& sender : senders) sender.join();
  for (const absl::Status& status : sent) LS_RETURN_IF_ERROR(status);
  LS_ASSIGN_OR_RETURN(StoredShards stored, sink->Finish());
  LS_RETURN_IF_ERROR(chief->store->Publish(std::move(stored), SmallCommit()).status());
  return Seconds(start);
}

absl::StatusOr<double> Dd(const std::string& directory, int64_t mib) {
  const std::string command =
      absl::StrCat("dd if=/dev/zero of='", directory, "/dd' bs=1M count=", mib, " conv=fsync status=none");
  const auto start = BenchClock::now();
  if (std::system(command.c_str()) != 0) return absl::InternalError(absl::StrCat("failed: ", command));
  return Seconds(start);
}

absl::Status Run(const Arguments& arguments) {
  LS_ASSIGN_OR_RETURN(const ShardToWrite upload, MakeUpload(arguments));
  std::vector<double> dd_times, save_times, ratios;
  for (int round = 0; round < arguments.rounds; ++round) {
    const std::string directory = arguments.directory + "/shard_write";
    std::filesystem::remove_all(directory);
    std::filesystem::create_directories(directory);
    LS_ASSIGN_OR_RETURN(const double dd, Dd(directory, arguments.mib));
    LS_ASSIGN_OR_RETURN(const double save, Save(directory + "/job", upload));
    std::filesystem::remove_all(directory);
    dd_times.push_back(dd);
    save_times.push_back(save);
    ratios.push_back(dd / save);
  }
  const double mib = static_cast<double>(arguments.mib);
  std::printf(
      "{\"bench\":\"shard_write\",\"mib\":%.0f,\"rounds\":%d,\"dd_mib_per_s\":%.0f,\"save_mib_per_s\":%.0f,"
      "\"save_over_dd\":%.3f}\n",
      mib, arguments.rounds, mib / Median(dd_times), mib / Median(save_times), Median(ratios));
  return absl::OkStatus();
}

}  // namespace
}  // namespace lockstep::chief

int main(int argc, char** argv) {
  lockstep::chief::Arguments arguments;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::strcmp(argv[i], "--dir") == 0) arguments.directory = argv[i + 1];
    if (std::strcmp(argv[i], "--mib") == 0) arguments.mib = std::atoll(argv[i + 1]);
    if (std::strcmp(argv[i], "--rounds") == 0) arguments.rounds = std::atoi(argv[i + 1]);
  }
  if (arguments.directory.empty()) {
    std::fprintf(stderr, "usage: shard_write_bench --dir DIR [--mib N] [--rounds N]\n");
    return 64;
  }
  const absl::Status status = lockstep::chief::Run(arguments);
  if (!status.ok()) std::fprintf(stderr, "shard_write_bench: %s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
