#include "support/tiny_models.hpp"

#include <ATen/ops/ones.h>
#include <torch/csrc/jit/api/compilation_unit.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/serialization/import_source.h>

#include <map>
#include <stdexcept>

#include "support/tiny_layers.hpp"

namespace vpp::test {

namespace {

using torch::jit::Module;

const char* const kVectors = "x = \"float32[8]\"\ny = \"float32[8]\"\n";
const char* const kImages = "x = \"float32[1, 8, 8]\"\ny = \"int64[] < 4\"\n";

Module make_mlp() {
    Module module = new_module("mlp", 4);
    module.define(R"(
def forward(self, x, y):
    h = torch.tanh(torch.linear(x, self.w1, self.b1))
    h = torch.relu(torch.linear(h, self.w2, self.b2))
    h = torch.gelu(torch.linear(h, self.w3, self.b3))
    return torch.mse_loss(torch.linear(h, self.w4, self.b4), y)
)");
    return module;
}

Module make_share() {
    Module module = new_module("share", 4);
    module.define(R"(
def forward(self, x, y):
    s = torch.tanh(torch.linear(x, self.w1, self.b1))
    same = s.contiguous()
    a = torch.linear(s, self.w2, self.b2) * s
    wide = s.mean([1], True).expand([-1, 8])
    b = torch.relu(a + same) + wide
    c = torch.sigmoid(b.view([-1, 2, 4])).reshape([-1, 8]) * s
    d = torch.linear(c, self.w3, self.b3) + s.t().t()
    e = torch.dropout(torch.sin(d * same + a), 0.5, False)
    f = torch.linear(e + s * wide, self.w4, self.b4)
    return torch.mse_loss(f + s + same * b, y)
)");
    return module;
}

Module make_bn_cnn() {
    Module module = new_module("bn_cnn");
    add_filter(module, "1", 4, 1);
    add_filter(module, "2", 4, 4);
    add_batch_norm(module, "1", 4);
    add_batch_norm(module, "2", 4);
    add_linear(module, "3", 4, 64);
    module.define(R"(
def forward(self, x, y):
    h = torch.conv2d(x, self.c1, None, [1, 1], [1, 1])
    self.num_batches_tracked1.add_(1)
    h = torch.relu_(torch.batch_norm(h, self.g1, self.o1, self.running_mean1, self.running_var1, self.training,
                                     0.1, 1e-5, False))
    skip = h
    h = torch.conv2d(h, self.c2, None, [1, 1], [1, 1])
    self.num_batches_tracked2.add_(1)
    h = torch.batch_norm(h, self.g2, self.o2, self.running_mean2, self.running_var2, self.training, 0.1, 1e-5,
                         False)
    h += skip
    h = torch.relu_(h)
    h = torch.max_pool2d(h, [2, 2], [2, 2], [0, 0], [1, 1], False)
    h = torch.linear(torch.flatten(h, 1), self.w3, self.b3)
    return torch.cross_entropy_loss(h, y, None, 1, -100, 0.0)
)");
    return module;
}

Module make_dropout() {
    Module module = new_module("dropout", 3);
    module.define(R"(
def forward(self, x, y):
    h = torch.dropout(torch.linear(x, self.w1, self.b1), 0.3, self.training)
    h = torch.relu(torch.dropout(h, 0.3, self.training))
    h = h + 0.1 * torch.rand_like(h)
    h = torch.linear(h, self.w2, self.b2)
    h = h * torch.bernoulli(torch.sigmoid(h))
    return torch.mse_loss(torch.linear(torch.dropout(h, 0.2, self.training), self.w3, self.b3), y)
)");
    return module;
}

Module make_containers() {
    Module module = new_module("containers", 3);
    module.define(R"(
def forward(self, x, y):
    n = x.size(0)
    parts = torch.chunk(torch.linear(x, self.w1, self.b1), 2, 1)
    a = torch.tanh(parts[0])
    both = (a, parts[1])
    scale = float(n) * 0.25
    values = [a, parts[1] * scale]
    h = torch.relu(torch.linear(torch.cat(values, 1), self.w2, self.b2)).view([n, -1])
    named = {"h": h, "a": a}
    left, right = both
    late = torch.cat([right, named["a"] + left], 1)
    out = torch.linear(named["h"] + late, self.w3, self.b3) * (scale + 1.0)
    if n > 100:
        out = out * 2.0
    return torch.mse_loss(out.view([n, 8]), y)
)");
    return module;
}

Module make_unet() {
    Module module = new_module("unet");
    add_filter(module, "1", 4, 1);
    add_filter(module, "2", 8, 4);
    add_filter(module, "3", 8, 8);
    add_filter(module, "4", 4, 12);
    add_filter(module, "5", 1, 4);
    module.register_parameter("up", keyed("up", {8, 8, 2, 2}, 0.3).set_requires_grad(true), false);
    module.define(R"(
def forward(self, x, y):
    one = torch.gelu(torch.conv2d(x, self.c1, None, [1, 1], [1, 1]))
    down = torch.max_pool2d(one, [2, 2], [2, 2], [0, 0], [1, 1], False)
    two = torch.silu(torch.conv2d(down, self.c2, None, [1, 1], [1, 1]))
    mid = two + torch.tanh(torch.conv2d(two, self.c3, None, [1, 1], [1, 1]))
    wide = torch.conv_transpose2d(mid, self.up, None, [2, 2])
    h = torch.cat([wide, one], 1)
    h = torch.relu(torch.conv2d(h, self.c4, None, [1, 1], [1, 1])) + one
    return torch.mse_loss(torch.conv2d(h * one, self.c5, None, [1, 1], [1, 1]) + x, y)
)");
    return module;
}

Module make_views() {
    Module module = new_module("views", 3);
    module.define(R"(
def forward(self, x, y):
    h = torch.linear(x, self.w1, self.b1)
    left = h[:, :4]
    left.mul_(2.0)
    g = torch.tanh(h) + torch.cat([left, left], 1)
    k = torch.linear(g, self.w2, self.b2)
    k += g
    k = torch.relu_(k)
    t = k.t()
    out = torch.linear(t.t() + k, self.w3, self.b3)
    out[:, 0] = 0.5
    return torch.mse_loss(out, y)
)");
    return module;
}

/// w2, b2: frozen and used twice far apart; `idle`: unused; `cut_off`: used, but its gradient never comes.
Module make_frozen() {
    Module module = new_module("frozen");
    add_linear(module, "1", 8, 8);
    add_linear(module, "2", 8, 8, false);
    add_linear(module, "3", 8, 8);
    module.register_parameter("idle", keyed("idle", {3}, 1).set_requires_grad(true), false);
    module.register_parameter("cut_off", keyed("cut_off", {8}, 1).set_requires_grad(true), false);
    module.define(R"(
def forward(self, x, y):
    h = torch.linear(x, self.w1, self.b1)
    h = torch.tanh(torch.linear(h, self.w2, self.b2)) + torch.detach(self.cut_off)
    h = torch.linear(torch.relu(h), self.w3, self.b3)
    return torch.mse_loss(torch.linear(h, self.w2, self.b2), y)
)");
    return module;
}

Module make_written() {
    Module module = new_module("written", 3);
    module.define(R"(
def forward(self, x, y):
    board = torch.zeros_like(x)
    h = torch.tanh(torch.linear(x, self.w1, self.b1))
    h = h * torch.cos(board)
    board[:, :4] = h[:, 2:6]
    k = torch.relu(torch.linear(h, self.w2, self.b2)) + board
    board.add_(torch.sin(k))
    out = torch.linear(board, self.w3, self.b3) + h
    held = torch.linear(out, self.w2, self.b1)
    wave = held * 0.5
    held.detach_()
    return torch.mse_loss(wave * torch.cos(held) + board, y)
)");
    return module;
}

Module make_tied() {
    Module module = new_module("tied", 3);
    module.define(R"(
def forward(self, x, y):
    same = self.w1.contiguous()
    h = torch.tanh(torch.linear(x, self.w1, self.b1)) + torch.linear(x, self.w1.t(), None)
    shared = [self.w2, self.b2]
    h = torch.relu(torch.linear(h, self.w2, self.b2)) * self.b1
    h = h + torch.sigmoid(torch.linear(h, same, self.b3))
    h = torch.gelu(torch.linear(h, shared[0], shared[1])) + self.b2 * h
    h = torch.linear(h, self.w3, self.b3) * torch.linear(h, self.w2, None)
    h = torch.tanh(torch.linear(h, self.w1, self.b1)) + self.b2
    return torch.mse_loss(torch.linear(h, same.t(), self.b3), y)
)");
    return module;
}

/// Buffers, a frozen weight and a trained bias that follow the data, and that backward wants as they were.
Module make_remembers() {
    Module module = new_module("remembers");
    for (const char* index : {"1", "2", "3"}) add_linear(module, index, 8, 8, *index != '2');
    for (const char* buffer : {"scale", "mean"}) module.register_buffer(buffer, at::ones({8}));
    module.define(R"(
def forward(self, x, y):
    h = torch.tanh(torch.linear(x, self.w1, self.b1))
    self.scale.mul_(0.9).add_(torch.mean(torch.abs(h.detach()), [0]), alpha=0.1)
    old = torch.sin(h / self.scale) * self.mean
    self.mean = 0.9 * self.mean + 0.1 * torch.mean(h.detach(), [0])
    self.w2.mul_(0.9).add_(torch.matmul(old.detach().t(), h.detach()), alpha=0.05)
    k = torch.sin(torch.linear(old + self.mean * h, self.w2, self.b2))
    self.b3.detach().mul_(0.9).add_(torch.mean(k.detach(), [0]), alpha=0.1)
    return torch.mse_loss(torch.linear(k, self.w3, self.b3), y)
)");
    return module;
}

Module make_two_tower() {
    Module module = new_module("two_tower", 4);
    module.register_parameter("table", keyed("table", {16, 8}, 0.5).set_requires_grad(true), false);
    for (const char* index : {"1", "2"}) add_scale_and_offset(module, index, 8);
    module.define(R"(
def forward(self, user, item, y):
    a = torch.mean(torch.embedding(self.table, user), [1])
    a = torch.tanh(torch.linear(a, self.w1, self.b1))
    a = torch.group_norm(a, 2, self.g1, self.o1)
    b = torch.embedding(self.table, item)
    b = torch.relu(torch.linear(b, self.w2, self.b2)) + b
    b = torch.group_norm(torch.linear(b, self.w3, self.b3), 4, self.g2, self.o2)
    c = torch.linear(a * b, self.w4, self.b4) + a
    return torch.mse_loss(torch.sum(c * b, [1]), y)
)");
    return module;
}

/// Values and gradients that begin inside the memory of others, so not where memory is allocated.
Module make_offsets() {
    Module module = new_module("offsets");
    for (const char* index : {"1", "2", "3"}) add_linear(module, index, 61, 61);
    add_linear(module, "4", 5, 60);
    module.define(R"(
def forward(self, x, y):
    h = torch.tanh(torch.linear(x, self.w1, self.b1))
    row = h[1]
    a = torch.matmul(self.w2, row) + self.b2
    b = torch.matmul(self.w3, torch.tanh(a)) + self.b3
    rows = torch.cat([b, a, row], 0).view([3, 61])
    inner = rows[:, 1:]
    c = torch.linear(inner, self.w4, self.b4)
    return torch.mse_loss(torch.linear(x, rows), y) + torch.sum(torch.sin(c)) * torch.matmul(row, b)
)");
    return module;
}

/// Control flow that follows the data: what comes out is now the tensor that went in, now another.
Module make_branches() {
    Module module = new_module("branches", 3);
    module.define(R"(
def forward(self, x, y):
    h = torch.tanh(torch.linear(x, self.w1, self.b1))
    k = h
    if bool(torch.sum(h) > 0.0):
        k = torch.sin(h)
    g = torch.linear(k, self.w2, self.b2)
    while bool(torch.max(torch.abs(g)) > 0.7):
        g = g * 0.5
    w = self.w3
    if bool(torch.mean(x) > 0.0):
        w = self.w2
    out = torch.relu(torch.linear(g + h * k, w, self.b3)) + torch.sin(k)
    return torch.mse_loss(torch.linear(out, self.w2, self.b3), y)
)");
    return module;
}

/// Written memory in pieces, as the blocks of YOLO and ShuffleNet have it.
Module make_gated() {
    Module module = new_module("gated");
    for (const char* index : {"1", "3"}) add_linear(module, index, 8, 8);
    add_linear(module, "2", 4, 4);
    module.define(R"(
def forward(self, x, y):
    h = torch.silu_(torch.linear(x, self.w1, self.b1))
    first, second = torch.chunk(h, 2, 1)
    third = torch.relu_(torch.linear(second, self.w2, self.b2))
    wide = torch.cat([first + third, second], 1)
    out = torch.linear(wide, self.w3, self.b3) + h
    return torch.mse_loss(torch.tanh(out) * torch.cat([third, first], 1), y)
)");
    return module;
}

/// Views of written data that no schema tells.
Module make_shifted() {
    Module module = new_module("shifted", 3);
    module.define(R"(
def forward(self, x, y):
    turned = torch.einsum("ij->ji", [x])
    turned.mul_(2.0)
    h = torch.tanh(torch.linear(x, self.w1, self.b1))
    left, right = torch.broadcast_tensors([x, torch.sin(h)])
    out = (torch.sigmoid(right) + left) * torch.mean(turned)
    out = torch.relu(torch.linear(out, self.w2, self.b2))
    return torch.mse_loss(torch.linear(torch.tanh(out), self.w3, self.b3), y)
)");
    return module;
}

/// A trained weight in a dict: a write to what else is in it may be one to the weight, as far as can be seen.
Module make_kept() {
    Module module = new_module("kept", 3);
    module.define(R"(
def forward(self, x, y):
    h = torch.tanh(torch.linear(x, self.w1, self.b1)) * 1.5
    named = {"h": h, "w": self.w2}
    k = named["h"]
    k.mul_(0.5)
    k = torch.linear(k, named["w"], self.b2)
    k = torch.relu(torch.linear(torch.sin(k), self.w3, self.b3))
    return torch.mse_loss(k, y)
)");
    return module;
}

// `with` needs an object with __enter__, and only the importer of saved code reads classes.
const char* const kNoGradSource = R"(
class no_grad:
  prev : bool
  def __enter__(self: __torch__.torch.autograd.grad_mode.no_grad) -> NoneType:
    self.prev = torch.is_grad_enabled()
    torch.set_grad_enabled(False)
    return None
  def __exit__(self: __torch__.torch.autograd.grad_mode.no_grad,
    exc_type: Any,
    exc_value: Any,
    traceback: Any) -> NoneType:
    prev = self.prev
    torch.set_grad_enabled(prev)
    return None
  def __init__(self: __torch__.torch.autograd.grad_mode.no_grad) -> NoneType:
    self.prev = False
    return None
)";
const char* const kGuardedSource = R"(
class Guarded(Module):
  __parameters__ = ["w1", "b1", "w2", "b2", ]
  __buffers__ = []
  w1 : Tensor
  b1 : Tensor
  w2 : Tensor
  b2 : Tensor
  training : bool
  def forward(self: __torch__.Guarded,
    x: Tensor,
    y: Tensor) -> Tensor:
    h = torch.tanh(torch.linear(x, self.w1, self.b1))
    guard = __torch__.torch.autograd.grad_mode.no_grad.__new__(__torch__.torch.autograd.grad_mode.no_grad)
    _0 = (guard).__init__()
    with guard:
      still = torch.mul(torch.linear(h, self.w2, self.b2), h)
    out = torch.linear(torch.add(h, torch.sigmoid(still)), self.w2, self.b2)
    return torch.mse_loss(torch.mul(out, still), y)
)";

Module make_no_grad() {
    auto unit = std::make_shared<torch::jit::CompilationUnit>();
    const std::vector<at::IValue> constants;
    const auto find = [](const std::string& module) {
        return std::make_shared<torch::jit::Source>(module == "__torch__" ? kGuardedSource : kNoGradSource);
    };
    torch::jit::SourceImporter importer(unit, &constants, find, 3);
    const auto type = importer.loadType(c10::QualifiedName("__torch__.Guarded"))->cast<c10::ClassType>();
    Module module(c10::ivalue::Object::create(c10::StrongTypePtr(unit, type), type->numAttributes()));
    for (const char* index : {"1", "2"}) {
        const std::string w = std::string("w") + index, b = std::string("b") + index;
        module.setattr(w, keyed(w, {8, 8}, 0.4).set_requires_grad(true));
        module.setattr(b, keyed(b, {8}, 0.2).set_requires_grad(true));
    }
    module.setattr("training", true);
    return module;
}

Module make_selects() {
    Module module = new_module("selects");
    add_linear(module, "1", 1024, 1024);
    module.define(R"(
def forward(self, x, y):
    h = torch.linear(x, self.w1, self.b1)
    chosen = torch.masked_select(h, x > 0.0)
    return torch.mean(torch.tanh(chosen)) + 0.0 * torch.mean(y)
)");
    return module;
}

Module make_looks_up() {
    Module module = new_module("looks_up");
    module.register_parameter("table", keyed("table", {4, 8}, 1).set_requires_grad(true), false);
    add_linear(module, "1", 8, 8);
    module.define(R"(
def forward(self, x, y):
    h = torch.tanh(torch.linear(y, self.w1, self.b1))
    return torch.mse_loss(torch.embedding(self.table, x) + h, y)
)");
    return module;
}

Module make_always_trains() {
    Module module = new_module("always_trains");
    add_linear(module, "1", 8, 8);
    add_linear(module, "2", 8, 8);
    add_batch_norm(module, "1", 8);
    module.define(R"(
def forward(self, x, y):
    h = torch.linear(x, self.w1, self.b1)
    self.num_batches_tracked1.add_(1)
    h = torch.batch_norm(h, self.g1, self.o1, self.running_mean1, self.running_var1, True, 0.1, 1e-5, False)
    return torch.mse_loss(torch.linear(h, self.w2, self.b2), y)
)");
    return module;
}

Module make_forces() {
    Module module = new_module("forces", 2);
    module.define(R"(
def forward(self, x, y):
    place = torch.tanh(torch.linear(x, self.w1, self.b1))
    energy = torch.sum(torch.sin(torch.linear(place, self.w2, self.b2)))
    force = torch.autograd.grad([energy], [place], create_graph=True)[0]
    assert force is not None
    return torch.mse_loss(force, y)
)");
    return module;
}

Module make_overflows() {
    Module module = new_module("overflows", 2);
    module.define(R"(
def forward(self, x, y):
    h = torch.linear(x, self.w1, self.b1)
    return torch.mse_loss(torch.linear(h * h * h, self.w2, self.b2), y)
)");
    return module;
}

Module make_steep() {
    Module module = new_module("steep");
    add_linear(module, "1", 8, 8);
    module.define(R"(
def forward(self, x, y):
    h = torch.linear(x, self.w1, self.b1)
    return torch.mse_loss(torch.sqrt(h - h) + h, y)
)");
    return module;
}

Module make_outputs() {
    Module module = new_module("outputs", 3);
    module.define(R"(
def forward(self, x, y):
    h = torch.linear(x, self.w1, self.b1)
    early = torch.tanh(h)
    g = torch.relu(torch.linear(early, self.w2, self.b2))
    h.mul_(2.0)
    out = torch.linear(torch.sigmoid(g + h), self.w3, self.b3)
    return torch.mse_loss(out, y), out, h, early, torch.sum(out), 3, x
)");
    return module;
}

Module make_baked() {
    Module module = new_module("baked", 2);
    module.define(R"(
def forward(self, x, y):
    h = torch.tanh(torch.linear(x, self.w1, self.b1)).view([2, 8])
    return torch.mse_loss(torch.linear(h, self.w2, self.b2), y)
)");
    return module;
}

struct Row {
    TinyModel model;
    Module (*make)();
};

const std::vector<Row>& rows() {
    static const std::vector<Row> kRows{
        {{"mlp", kVectors}, make_mlp},
        {{"share", kVectors}, make_share},
        {{"bn_cnn", kImages}, make_bn_cnn},
        {{"dropout", kVectors}, make_dropout},
        {{"containers", kVectors}, make_containers},
        {{"unet", "x = \"float32[1, 8, 8]\"\ny = \"float32[1, 8, 8]\"\n"}, make_unet},
        {{"no_grad", kVectors}, make_no_grad},
        {{"views", kVectors}, make_views},
        {{"written", kVectors}, make_written},
        {{"frozen", kVectors}, make_frozen},
        {{"tied", kVectors}, make_tied},
        {{"two_tower", "user = \"int64[3] < 16\"\nitem = \"int64[] < 16\"\ny = \"float32[]\"\n"}, make_two_tower},
        {{"offsets", "x = \"float32[61]\"\ny = \"float32[3]\"\n"}, make_offsets},
        {{"branches", kVectors}, make_branches},
        {{"gated", kVectors}, make_gated},
        {{"kept", kVectors}, make_kept},
        {{"shifted", kVectors}, make_shifted},
        {{"remembers", kVectors}, make_remembers},
        {{"selects", "x = \"float32[1024]\"\ny = \"float32[8]\"\n"}, make_selects},
        {{"looks_up", "x = \"int64[] < 1000\"\ny = \"float32[8]\"\n"}, make_looks_up},
        {{"overflows", kVectors}, make_overflows},
        {{"steep", kVectors}, make_steep},
        {{"always_trains", kVectors}, make_always_trains},
        {{"forces", kVectors}, make_forces},
        {{"outputs", kVectors}, make_outputs},
        {{"baked", kVectors}, make_baked},
    };
    return kRows;
}

constexpr size_t kNumGood = 18;

std::vector<TinyModel> models(size_t begin, size_t end) {
    std::vector<TinyModel> found;
    for (size_t i = begin; i < end; ++i) found.push_back(rows()[i].model);
    return found;
}

const Row& row_of(const std::string& name) {
    for (const Row& row : rows()) {
        if (row.model.name == name) return row;
    }
    throw std::out_of_range("there is no tiny model '" + name + "'");
}

}  // namespace

const std::vector<TinyModel>& tiny_models() {
    static const std::vector<TinyModel> kModels = models(0, kNumGood);
    return kModels;
}

const std::vector<TinyModel>& bad_models() {
    static const std::vector<TinyModel> kModels = models(kNumGood, rows().size());
    return kModels;
}

const TinyModel& tiny_model(const std::string& name) {
    return row_of(name).model;
}

void save_tiny_model(const std::string& name, const std::string& path) {
    row_of(name).make().save(path);
}

}  // namespace vpp::test
