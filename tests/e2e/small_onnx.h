// Writes ONNX files of a few nodes for tests. The models take samples of 12 numbers and give 4 scores, except for
// costs, which are scalars.
//
// Threading: thread-safe (pure functions, each writes its own file).
#ifndef LOCKSTEP_TESTS_E2E_SMALL_ONNX_H_
#define LOCKSTEP_TESTS_E2E_SMALL_ONNX_H_

#include <string>

namespace lockstep::e2e {

// `input` x w.
void WriteLinear(const std::string& path, const std::string& input);
// x x w, where x has the element type that ONNX numbers so and is cast to float32 first.
void WriteLinearOf(const std::string& path, int element_type);
// (`other` + x) x w.
void WriteTwoInputs(const std::string& path, const std::string& other);
// The mean of the squares of x x w.
void WriteCost(const std::string& path);
// x x w over the number of samples in the batch.
void WriteByBatch(const std::string& path);
// Two outputs: x x w, and x x v, which no loss reads.
void WriteTwoOutputs(const std::string& path);
// softmax(x) x w.
void WriteMasked(const std::string& path);
// For images [1, 28, 28]: how far the products of each sample's scores with those of every sample are from 1.
void WriteContrast(const std::string& path);
// (0 where x is NaN, else x) x w.
void WriteNanAware(const std::string& path);

}  // namespace lockstep::e2e

#endif  // LOCKSTEP_TESTS_E2E_SMALL_ONNX_H_
