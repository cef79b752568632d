// The state of one import, shared by the readers of nodes (import_nodes.cc, import_readers.cc), of the graph
// (import.cc) and of the state dict (import_state.cc).
//
// Threading: thread-compatible.
#ifndef LOCKSTEP_COMMON_GRAPH_ONNX_IMPORTER_H_
#define LOCKSTEP_COMMON_GRAPH_ONNX_IMPORTER_H_

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/graph/onnx/export_notes.h"
#include "common/graph/onnx/import.h"
#include "common/graph/onnx/inline_functions.h"
#include "common/graph/onnx/signature.h"
#include "common/graph/ops/raw_attributes.h"

namespace lockstep {

class OnnxImporter {
 public:
  OnnxImporter(OnnxFile file, const OnnxImportOptions& options);

  absl::StatusOr<ImportedModel> Run();

  // OK when nodes of this kind can be read, whatever their inputs and attributes; else the reason (op_report.cc).
  static absl::Status CheckKind(const onnx::NodeProto& node);

 private:
  // What is known of a value of the file: it is a constant tensor, a value of the graph, or a list of values (a
  // sequence).
  struct Value {
    std::shared_ptr<const Tensor> constant;
    std::shared_ptr<const Tensor> known;  // the elements of a graph value, by options.known_inputs
    std::string name;                     // in the graph; empty for a constant that no node of the graph uses yet
    std::vector<std::string> sequence;
    bool is_sequence = false;
  };
  // An initialiser that no node has used yet; its first use decides whether it becomes a variable or a constant.
  struct Initializer {
    const onnx::TensorProto* message = nullptr;
    bool parameter = false;
  };
  struct Tie {
    std::string first;
    bool certain = false;  // confirmed by the call that reads it
  };
  // A node with its attributes turned into ours.
  struct Call {
    const onnx::NodeProto* node;
    RawAttributes attributes;
    std::string label;  // its name, generated when the file has none
  };
  using Reader = absl::Status (OnnxImporter::*)(Call& call);

  // import.cc
  absl::Status CheckFile();
  void CollectNames();
  absl::Status ReadSignature();
  absl::Status AddInitializers();
  absl::Status AddInputs();
  absl::Status AddInput(const onnx::ValueInfoProto& input);
  absl::Status AddNodes();
  absl::StatusOr<const Value*> Find(const std::string& name);
  absl::Status AddVariable(const std::string& name, VariableKind kind, Tensor value);
  absl::StatusOr<ValueInfo> InfoOf(const std::string& name);
  // The value's elements; null when they are not known before anything runs.
  absl::StatusOr<const Tensor*> KnownElements(const std::string& name);
  // The name under which nodes of the graph read a value of the file; a constant is added to the graph for it.
  absl::StatusOr<std::string> NameInGraph(const std::string& name);
  // A name for a value or node that the file does not name: `name`, or a variation of it where the file or the graph
  // already uses that.
  std::string Fresh(std::string name);
  void Define(const std::string& name, Tensor constant);
  void Alias(const std::string& name, const std::string& of);
  absl::Status AddOutputs();
  void Finish();

  // import_merged.cc
  class MergedCall;
  void SplitMerged();
  void SplitByCalls();
  void SplitByNames();
  void WarnOfAlike();

  // import_norms.cc
  absl::Status ChooseNorms();
  bool SaysTraining() const;
  void FindMergedStatistics();
  absl::Status CheckGivenStatistics(const std::vector<std::string>& inputs);
  absl::Status CheckOwnStatistic(const std::string& name) const;
  absl::Status ReadBatchNormalization(Call& call);
  absl::Status ReadMovedStatistics(Call& call);
  class GivenStatistics;

  // import_gradients.cc
  absl::Status ChooseMoves();
  absl::Status ChooseStops();
  absl::Status StopBehind(const std::string& value);
  absl::StatusOr<bool> StopOne(const std::string& value);
  absl::Status StopOutputs(const onnx::NodeProto& node);
  absl::Status AddMoves();
  absl::Status AddMove(const std::string& buffer, const std::string& value);
  void WarnOfBlocks();

  // import_lost.cc
  void SortLostParameters();
  absl::Status FindFoldedWeights();
  bool TakesComputed(const onnx::NodeProto& node, const std::set<std::string>& given) const;
  absl::Status AddTied();
  absl::Status NoteFrozen();
  void NameMissing();
  std::string MergedNormOf(absl::string_view parameter) const;

  // import_state.cc
  absl::Status KeepUnread();
  void AddStepCounts();

  // import_branches.cc
  class Choice;
  absl::StatusOr<std::optional<bool>> KnownCondition(const std::string& condition);
  absl::StatusOr<bool> IsTaken(int branch);
  absl::Status ReadLogical(Call& call);
  absl::Status ReadBranchInput(Call& call);
  absl::Status ReadBranchOutput(Call& call);

  // import_loops.cc
  class Trips;
  class Loop;
  class Scan;
  // The place of the LoopEnd for the LoopBegin at `begin`.
  int EndOfLoop(int begin) const;
  absl::Status ReadLoop(Call& call, int begin, int end);
  std::string NameInTrip(const std::string& value);

  // import_nodes.cc
  // Reads the node at `at`, for a LoopBegin the whole loop. Returns the place of the next node.
  absl::StatusOr<int> AddNode(int at);
  // Where one names a type of half precision, it names the type in which that is held.
  absl::StatusOr<RawAttributes> ReadAttributes(const onnx::NodeProto& node);
  absl::Status ReadGeneric(Call& call);
  // Appends our node for a call, or folds it when all its inputs are constants and it draws no random numbers.
  absl::Status Emit(const Call& call, OpType op, std::vector<std::string> inputs, std::vector<std::string> outputs);
  absl::Status TakeAttributeInputs(Call& call, OpType op, std::vector<std::string>* inputs);
  // Accounts for a constant of `bytes`. InvalidArgument over the limits of node_fields.h.
  absl::Status TakeMemory(int64_t bytes);
  // A constant of zeros, accounted for by TakeMemory.
  absl::StatusOr<Tensor> NewConstant(DType dtype, Shape shape);
  // Accounts for the work of folding `node`. InvalidArgument over kMaxFoldedWork.
  absl::Status TakeTime(const Node& node, absl::Span<const ValueInfo* const> inputs,
                        absl::Span<const ValueInfo> outputs);
  absl::Status FoldNode(Node node, const std::vector<std::string>& inputs);
  absl::Status MakeBroadcastExplicit(Call& call, std::vector<std::string>* inputs);
  absl::Status MakePaddingExplicit(Call& call, OpType op);
  absl::StatusOr<const Tensor*> NeedKnown(const Call& call, int input, absl::string_view what);
  absl::StatusOr<int64_t> KnownInt(const Call& call, int input, absl::string_view what);
  absl::StatusOr<std::vector<int64_t>> KnownInts(const Call& call, int input, absl::string_view what);
  // The type and shape of input 0. InvalidArgument unless it is F32 or F64.
  absl::StatusOr<ValueInfo> FirstFloating(const Call& call);

  // import_readers.cc
  absl::Status ReadConstant(Call& call);
  absl::Status ReadShape(Call& call);
  absl::Status ReadSize(Call& call);
  absl::Status ReadConstantOfShape(Call& call);
  absl::Status ReadRange(Call& call);
  absl::Status ReadIdentity(Call& call);
  absl::Status ReadDropout(Call& call);
  absl::Status ReadVariadic(Call& call);
  absl::Status ReadConcat(Call& call);
  absl::Status ReadSoftmax(Call& call);
  absl::Status ReadSplitToSequence(Call& call);
  absl::Status ReadSequenceAt(Call& call);

  // import_composed.cc
  class Composed;
  absl::Status ReadSwish(Call& call);
  absl::Status ReadSpaceToDepth(Call& call);
  absl::Status ReadRotaryEmbedding(Call& call);

  // import_layers.cc
  class Layers;
  absl::Status ReadLrn(Call& call);
  absl::Status ReadLpPool(Call& call);
  absl::Status ReadMeanVariance(Call& call);
  absl::Status ReadCenterCropPad(Call& call);
  absl::Status ReadHardmax(Call& call);
  absl::Status ReadCumProd(Call& call);
  absl::Status ReadMod(Call& call);
  absl::Status ReadCol2Im(Call& call);
  absl::Status ReadEyeLike(Call& call);
  absl::Status ReadScatter(Call& call);

  // import_resize.cc
  class Resizing;
  absl::Status ReadResize(Call& call);

  // import_sampling.cc
  class GridSample;
  absl::Status ReadGridSample(Call& call);
  class AffineGrid;
  absl::Status ReadAffineGrid(Call& call);

  // import_signal.cc
  class Fourier;
  absl::Status ReadDft(Call& call);
  absl::Status ReadStft(Call& call);
  absl::Status ReadWindow(Call& call);

  // import_types.cc
  // The type in which a value of this type is held: F32 for half precision, which `halves_` notes, else the same.
  DType HeldAs(DType dtype);
  int64_t HeldType(int64_t element_type);  // the same for ONNX's numbers of types
  // The tensor, in the type in which it is held.
  absl::StatusOr<Tensor> ReadTensor(const onnx::TensorProto& message);
  void WarnOfHalves();
  absl::Status ReadCast(Call& call);
  // Casts the call's input, which is `from`, to the type that its attributes say.
  absl::Status EmitCast(const Call& call, DType from);
  absl::Status ReadCastLike(Call& call);
  // Whether the op computes with integers that Cast alone takes.
  absl::StatusOr<bool> ComputesRareIntegers(OpType op, const std::vector<std::string>& inputs);
  // Emit for such an op: it computes in a wider type, and its result has the type's low bits.
  absl::Status EmitWidened(const Call& call, OpType op, const std::vector<std::string>& inputs,
                           const std::vector<std::string>& outputs);

  // import_quantize.cc
  class Quantisation;
  // The values that are scales and zero points. PyTorch's observers set them, and no optimizer: in a file that does not
  // say what its parameters are, they are buffers.
  std::set<std::string> FindQuantisers() const;
  absl::Status ReadClip(Call& call);
  absl::Status ReadQuantizeLinear(Call& call);
  absl::Status ReadDequantizeLinear(Call& call);
  absl::Status ReadDynamicQuantizeLinear(Call& call);

  // import_random.cc
  class Drawing;
  absl::Status CheckDraws() const;
  absl::Status ReadRandom(Call& call);
  absl::Status ReadBernoulli(Call& call);
  absl::Status ReadMultinomial(Call& call);
  std::string WithBatch(const Shape& shape) const;
  void FindDrops();
  absl::Status DropOutputs(const onnx::NodeProto& node);
  // Which sequence of random numbers the node draws.
  static int64_t StreamOf(const Call& call);

  // expansion.h
  class Expansion;

  // import_attention.cc
  class Attention;
  absl::Status ReadAttention(Call& call);

  // import_group_norm.cc
  class GroupNormalization;
  absl::Status ReadGroupNormalization(Call& call);

  // import_recurrent.cc
  class Recurrent;
  absl::Status ReadRecurrent(Call& call);

  static Reader ReaderOf(const onnx::NodeProto& node);
  int64_t opset() const { return opset_; }

  const OnnxFile file_;
  const OnnxImportOptions& options_;
  std::string folder_;
  onnx::GraphProto nodes_;  // after FlattenModel
  std::deque<onnx::TensorProto> branch_initializers_;
  std::vector<Branch> branches_;
  std::map<std::string, int> branch_of_;  // by the first output of a node
  int branch_ = -1;                       // the branch of the node that is being read; -1: none
  std::vector<onnx::NodeProto> loops_;    // by the number in LoopBegin and LoopEnd
  std::string trip_;                      // which trips are being read, outermost first, as "/3/0"; empty: none
  int64_t trips_ = 0;                     // of all loops so far
  int64_t read_in_trips_ = 0;             // nodes of the file
  int64_t opset_ = 0;
  bool from_pytorch_ = false;
  bool has_signature_ = false;
  OnnxSignature signature_;  // empty where the file has none
  std::optional<ExportNotes> export_notes_;
  std::map<std::string, std::string> tied_;                // second names -> first, from the job and the file
  std::set<std::string> frozen_norms_;                     // named by their running means
  std::set<std::string> statistics_;                       // of batch normalisations that were read
  std::set<std::string> merged_statistics_;                // statistics that are weights, too
  std::map<std::string, std::string> moves_;               // buffers that the model changes -> their new values
  std::set<std::string> stopped_;                          // values of the file, by options.stop_gradient and `moves_`
  std::map<std::string, std::string> stops_;               // stopped values -> their names in the graph
  std::map<std::string, std::vector<std::string>> drops_;  // FindDroppingLayers
  // Parameters of the signature without values in the file: ties_ maps second names to first ones, unused_ has those
  // that no call takes, lost_ the rest, which exporters folded into other values.
  std::map<std::string, Tie> ties_;
  std::vector<std::string> unused_;
  std::set<std::string> lost_;
  std::set<std::string> alike_;  // parameters merged into others by nodes that do not distinguish them
  bool optimized_ = false;       // the exporter added or merged initialisers
  std::map<std::string, Initializer> initializers_;
  std::deque<onnx::TensorProto> restored_;  // initialisers that the exporter omitted
  std::map<std::string, Value> values_;
  std::set<std::string> taken_names_;  // of the file's nodes and values, and generated ones
  std::set<std::string> node_names_;
  size_t folded_nodes_ = 0;
  int64_t folded_bytes_ = 0;
  double folded_work_ = 0;
  std::map<std::string, bool> input_has_batch_;
  std::set<std::string> quantisers_;              // FindQuantisers
  std::map<std::string, std::string> quantised_;  // values of the file that are quantised -> the same as floats
  std::set<std::string> halves_;                  // the types of half precision that the file holds values of
  std::vector<std::string> folded_weights_;       // trained although the signature does not name them
  ImportedModel model_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_GRAPH_ONNX_IMPORTER_H_
