// Which code needs trust, and that LibTorch has no operator with an effect that nobody judged.
#include "graph/operator_check.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/jit/runtime/operator.h>

#include <fstream>
#include <set>
#include <sstream>

#include "unit/graph/models.hpp"

namespace vpp {
namespace {

using namespace test;
using ::testing::HasSubstr;

/// Operators that take text or return nothing and were judged: they compute, check, raise, or set a mode of the model.
/// warn is among them: its text goes through model_output.
constexpr const char* kJudgedHarmless =
    "AddStatValue BroadcastMKLDNNTensors ChunkSizes ConstantChunk ConstantMKLDNNTensor Delete DifferentiableGraph "
    "FallbackGraph Float FusedConcat FusionGroup Int MMBatchSide ModuleContainerIndex RaiseException "
    "RequiresGradCheck StaticRuntimeCopyOuts StaticSubgraph StringIndex TensorExprDynamicGroup TensorExprGroup "
    "TupleUnpack TypeCheck __contains__ __getitem__ __interpolate __upsample _assert_async _assert_scalar "
    "_assert_tensor_metadata _backward _convolution_mode _cufft_clear_plan_cache _cufft_set_plan_cache_max_size "
    "_functional_assert_async _functional_assert_scalar _linalg_check_errors _linalg_eigh _linalg_svd "
    "_mixed_dtypes_linear _propagate_xla_data _segment_reduce_backward _set_item _sparse_log_softmax _sparse_mm "
    "_sparse_mm_reduce_impl _sparse_mm_reduce_impl_backward _sparse_semi_structured_linear "
    "_sparse_semi_structured_tile _sparse_softmax _test_ambiguous_defaults _test_string_default "
    "_validate_compressed_sparse_indices _validate_sparse_bsc_tensor_args _validate_sparse_bsr_tensor_args "
    "_validate_sparse_compressed_tensor_args _validate_sparse_coo_tensor_args _validate_sparse_csc_tensor_args "
    "_validate_sparse_csr_tensor_args add align_to all any argsort backward capitalize cat center clear concat "
    "concatenate conv1d conv2d conv3d copy count cummax cummin cumprod cumprod_ cumsum cumsum_ device diagonal dict "
    "div div_ divide divide_ einsum empty endswith eq expandtabs fft_fft fft_fft2 fft_fftn fft_hfft fft_hfft2 "
    "fft_hfftn fft_ifft fft_ifft2 fft_ifftn fft_ihfft fft_ihfft2 fft_ihfftn fft_irfft fft_irfft2 fft_irfftn fft_rfft "
    "fft_rfft2 fft_rfftn find flatten format full gather ge gelu gelu_ gelu_backward get get_autocast_dtype gt index "
    "index_add index_copy index_copy_ index_fill index_fill_ index_reduce index_reduce_ index_select isalnum isalpha "
    "isdecimal isdigit isidentifier islower isnumeric isprintable isspace istitle isupper items join keys kthvalue le "
    "len linalg_cond linalg_eigh linalg_eigvalsh linalg_lstsq linalg_matrix_norm linalg_norm linalg_qr linalg_svd "
    "linalg_svdvals list ljust log_softmax logcumsumexp logsumexp lower lstrip lt manual_seed max mean median "
    "meshgrid min mode nanmedian nanquantile ne norm oneDNNFusionGroup oneDNNFusionGuard ones ord pad pad_sequence "
    "partition percentFormat pop popitem prod profile profile_ivalue quantile rand randn refine_names remove rename "
    "rename_ replace rfind rindex rjust rpartition rsplit rstrip scatter scatter_ scatter_add scatter_reduce "
    "scatter_reduce_ searchsorted segment_reduce select set_grad_enabled setdefault size slice softmax sort sorted "
    "split splitlines squeeze squeeze_ startswith std std_mean stft stride strip sum swapcase sym_constrain_range "
    "sym_constrain_range_for_size title tolist transpose unbind unflatten update upper values var var_mean warn zeros "
    "zfill ";

std::string what(std::string_view code) {
    const auto found = find_untrusted(code);
    return found ? std::to_string(found->line) + ": " + found->what : "";
}

TEST(OperatorCheck, OrdinaryCodePasses) {
    EXPECT_EQ(what(R"(class Net(Module):
  __parameters__ = ["weight", ]
  __annotations__["0"] = __torch__.torchvision.ops.misc.Conv2dNormActivation
  def forward(self: __torch__.Net, x: Tensor) -> Tensor:
    _0 = "AssertionError: print, save and from_file are words"
    _1 = getattr(self, "0")
    if torch.gt(torch.len(torch.size(x)), 2):
      ops.prim.RaiseException(_0, "builtins.ValueError")
    torch.warn("do not print", 2)
    save = torch.add(x, CONSTANTS.c0, alpha=1e-05)
    return (getattr(_1.blocks, "3")).forward(ops.prim.NumToTensor(torch.size(save, 0)), "\"it's\" \\", )
)"),
              "");
}

TEST(OperatorCheck, EffectsAreFoundHoweverTheyAreSpelt) {
    EXPECT_EQ(what("a = 1\nb = torch.from_file(\"x\")\n"), "2: calls from_file, which reads and writes files");
    for (const char* code :
         {"torch.save(x, \"f\")", "x.save(\"f\")", "ops.aten.save(x, \"f\")", "t = torch\nt.from_file(\"f\")",
          "f = torch.from_file", "getattr(torch, \"save\")(x, \"f\")", "getattr(self.a, 'from_file')", "print(x)",
          "p = print", "ops.prim.Print(x)", "torch . _print(\"x\")", "torch.\n  save(x)", "# type: (int)\nx.save(1)",
          "\"\" + x.save(\"\")", "'\\'' + x.save('')", "rpc_async(1)", "ops.prim.PythonOp(1)"}) {
        EXPECT_THAT(what(code), HasSubstr("calls ")) << code;
    }
}

TEST(OperatorCheck, NamesThatLookAlikePass) {
    for (const char* code :
         {"self.save_for_later(x)", "torch.from_filey(x)", "save = x", "self.print(x)", "def print(self):", "self.ops",
          "self.getattr(x)", "printer(x)", "def ops(self):", "self.classes", "getattr(self, \"classes\")",
          "getattr(self, \"conv-1.x\")", "\"# no comment\""}) {
        EXPECT_EQ(what(code), "") << code;
    }
}

TEST(OperatorCheck, OtherLibrariesAreNamed) {
    EXPECT_EQ(what("ops.quantized.linear(x)"),
              "1: calls quantized::linear, an operator of a library that vpp does not "
              "know");
    EXPECT_THAT(what("ops.profiler._record_function_enter(x)"), HasSubstr("profiler::_record_function_enter"));
    EXPECT_THAT(what("x: __torch__.torch.classes.quantized.Foo"), HasSubstr("custom class"));
}

TEST(OperatorCheck, CodeThatRunsWhileLoading) {
    EXPECT_THAT(what("def __setstate__(self, state: int) -> NoneType:"), HasSubstr("runs while the file is loaded"));
    EXPECT_THAT(what("getattr(x, \"__setstate__\")"), HasSubstr("__setstate__"));
    EXPECT_EQ(what("def __getstate__(self) -> int:"), "") << "it runs while saving";
}

TEST(OperatorCheck, WhatHidesNamesIsFound) {
    for (const char* code : {"o = ops", "ops.aten", "(ops).aten.save(x)", "getattr(torch, \"sa\\x76e\")",
                             "getattr(torch, \"sa\" \"ve\")", "getattr(torch, name)", "g = getattr", "getattr(torch"}) {
        EXPECT_THAT(what(code), HasSubstr("hides names")) << code;
    }
    EXPECT_THAT(what("x = \"\"\"a\"\"\""), HasSubstr("triple quotes"));
    EXPECT_THAT(what("x = \"a\ny = 1"), HasSubstr("a string without an end"));
    EXPECT_THAT(what("x = \"a\\"), HasSubstr("a string without an end"));
}

TEST(OperatorCheck, EveryOperatorThatCouldHaveAnEffectWasJudged) {
    std::set<std::string> judged;
    std::istringstream words(kJudgedHarmless);
    for (std::string word; words >> word;) judged.insert(word);
    for (const RefusedOperator& op : refused_operators()) {
        EXPECT_FALSE(judged.contains(std::string(op.name)));
        judged.insert(std::string(op.name));
    }
    std::set<std::string> unjudged, refused;
    for (const auto& op : torch::jit::getAllOperators()) {
        const c10::FunctionSchema& schema = op->schema();
        const std::string full = schema.name();
        if (!full.starts_with("aten::") && !full.starts_with("prim::")) continue;
        const std::string name = full.substr(6);
        bool takes_text = false, writes = false;
        for (const c10::Argument& argument : schema.arguments()) {
            takes_text = takes_text || argument.type()->str().find("str") != std::string::npos;
            writes = writes || (argument.alias_info() && argument.alias_info()->isWrite());
        }
        const bool suspicious = takes_text || (schema.returns().empty() && !writes);
        if (suspicious && !judged.contains(name)) unjudged.insert(name);
        for (const RefusedOperator& known : refused_operators()) {
            if (known.name == name) refused.insert(name);
        }
    }
    EXPECT_EQ(unjudged, std::set<std::string>{});
    for (const char* name : {"from_file", "save", "Print", "_print"}) EXPECT_TRUE(refused.contains(name)) << name;
}

/// A model that reads a file in forward.
ModuleSpec reader() {
    return {"Reader", "def forward(self, x):\n    return x + torch.from_file(\"data.bin\", False, 4)\n"};
}

TEST(OperatorCheck, AFileIsRefusedByNameUnlessItsDigestIsTrusted) {
    const std::filesystem::path path = save(reader());
    const Archive archive(path);
    const std::string text = refusal(ErrorKind::Refused, [&] { check_operators(archive, {std::string(64, '0')}); });
    for (const std::string& part : {path.string(), std::string("calls from_file, which reads and writes files"),
                                    std::string(".py:"), "model.trust_sha256 = [\"" + archive.sha256() + "\"]"}) {
        EXPECT_THAT(text, HasSubstr(part));
    }
    EXPECT_NO_THROW(check_operators(archive, {std::string(64, '0'), archive.sha256()}));
    EXPECT_NO_THROW(check_operators(Archive(save(linear(2, 2))), {}));
}

TEST(OperatorCheck, ThePathOfLoadingIsGuarded) {
    const auto archive = std::make_shared<const Archive>(save(reader()));
    TorchScriptOptions options = options_for({floats("x", {4})});
    options.loss = LossPlan{.kind = "mse", .target = "x"};
    EXPECT_THAT(refusal(ErrorKind::Refused, [&] { load_torchscript(archive, options); }), HasSubstr("from_file"));
    options.trust_sha256 = {archive->sha256()};
    EXPECT_THAT(refusal(ErrorKind::BadData, [&] { load_torchscript(archive, options); }), HasSubstr("data.bin"))
        << "trusted, it gets as far as asking for its file";
}

}  // namespace
}  // namespace vpp
