// The contract suite of Communicator: a test of each implementation supplies a GroupFactory and calls these functions.
//
// Threading: thread-compatible; each rank's part runs on a thread of its own.
#ifndef LOCKSTEP_TESTS_CONTRACTS_COMMUNICATOR_CONTRACT_H_
#define LOCKSTEP_TESTS_CONTRACTS_COMMUNICATOR_CONTRACT_H_

#include <functional>
#include <memory>
#include <vector>

#include "worker/collectives/communicator.h"

namespace lockstep::worker {

// Forms the ranks of a new generation.
using GroupFactory = std::function<std::vector<std::unique_ptr<Communicator>>(int size)>;

// Calls body(rank's communicator) on one thread per rank and joins them.
void OnEveryRank(const std::vector<std::unique_ptr<Communicator>>& group,
                 const std::function<void(Communicator&)>& body);

// The suite, one function per promise; called inside a TEST_CASE.
void CheckSums(const GroupFactory& make, int size);
void CheckGatherAndBroadcast(const GroupFactory& make, int size);
// One rank runs far ahead of the others, in calls that it can finish without them.
void CheckManyCallsAhead(const GroupFactory& make, int size);
void CheckOrderOfCalls(const GroupFactory& make, int size);
void CheckBadSizes(const GroupFactory& make);
void CheckAbortFromEachSide(const GroupFactory& make, int size);
void CheckUseAfterAbort(const GroupFactory& make, int size);
void CheckDifferentTags(const GroupFactory& make);
void CheckClosingEndsPeers(const GroupFactory& make, int size);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_TESTS_CONTRACTS_COMMUNICATOR_CONTRACT_H_
