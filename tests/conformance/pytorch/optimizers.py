"""Makes optimizers.txt: what torch.optim and its averages do to a small parameter. Run: python3 optimizers.py > optimizers.txt

Gradients and initial values are multiples of 1/64, so that both sides start from the same floats. One line per case and
step: the name, the number of updates, the parameter's elements.
"""
import torch
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

STEPS = 12


class Lion(torch.optim.Optimizer):
    """Chen et al., 2023: a step of one length by the sign of a mean."""

    def __init__(self, params, lr, betas=(0.9, 0.99), weight_decay=0.0):
        super().__init__(params, dict(lr=lr, betas=betas, weight_decay=weight_decay))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            first, second = group["betas"]
            for parameter in group["params"]:
                mean = self.state[parameter].setdefault("exp_avg", torch.zeros_like(parameter))
                parameter.mul_(1 - group["lr"] * group["weight_decay"])
                direction = mean * first + parameter.grad * (1 - first)
                parameter.add_(direction.sign(), alpha=-group["lr"])
                mean.mul_(second).add_(parameter.grad, alpha=1 - second)


SIZE = 6

CASES = {
    "sgd": (torch.optim.SGD, dict(lr=0.1), None),
    "sgd_decay": (torch.optim.SGD, dict(lr=0.1, weight_decay=0.05), None),
    "sgd_momentum": (torch.optim.SGD, dict(lr=0.05, momentum=0.9, weight_decay=0.01), None),
    "sgd_nesterov": (torch.optim.SGD, dict(lr=0.05, momentum=0.9, nesterov=True), None),
    "sgd_clipped": (torch.optim.SGD, dict(lr=0.1, momentum=0.5), 0.75),
    "adam": (torch.optim.Adam, dict(lr=0.01), None),
    "adam_decay": (torch.optim.Adam, dict(lr=0.01, betas=(0.8, 0.95), eps=1e-6, weight_decay=0.1), None),
    "adamw": (torch.optim.AdamW, dict(lr=0.01, weight_decay=0.1), None),
    "adamw_clipped": (torch.optim.AdamW, dict(lr=0.02, betas=(0.9, 0.99), weight_decay=0.01), 0.5),
    "rmsprop": (torch.optim.RMSprop, dict(lr=0.01, foreach=False), None),
    "rmsprop_momentum": (torch.optim.RMSprop, dict(lr=0.01, alpha=0.9, eps=1e-3, momentum=0.9, weight_decay=0.05,
                                                   foreach=False), None),
    "adagrad": (torch.optim.Adagrad, dict(lr=0.1, foreach=False), None),
    "adagrad_decay": (torch.optim.Adagrad, dict(lr=0.05, eps=1e-3, weight_decay=0.1, foreach=False), 0.75),
    "lion": (Lion, dict(lr=0.01), None),
    "lion_decay": (Lion, dict(lr=0.02, betas=(0.95, 0.98), weight_decay=0.1), 0.5),
}

# Adafactor needs the shape of the parameter.
SHAPED = {
    "adafactor_vector": ((6,), dict(lr=0.01), None),
    "adafactor_matrix": ((2, 3), dict(lr=0.02), None),
    "adafactor_matrices": ((2, 3, 4), dict(lr=0.5, beta2_decay=-0.6, eps=(1e-5, 0.75), d=1.125, weight_decay=0.1), 0.75),
}

# Averages beside one of the cases: the decay, and the first update (from 1) after which the average is updated. Before
# that the line shows the parameter.
AVERAGES = {
    "ema_sgd_momentum": ("sgd_momentum", 0.9, 1),
    "ema_adamw": ("adamw", 0.999, 1),
    "ema_adamw_late": ("adamw", 0.75, 5),
}

# Metrics of evaluations, and the rates behind them.
PLATEAUS = {
    "plateau_loss": ("min", [3, 2.9, 2.95, 2.89, 2.88, 2.5, 2.4, 2.41, 2.39, 2.38, 2.37, 2.36, 2.39, 2.5, 2.1, 2.2,
                             2.2, 2.2, 2.2, 2.2, 2.2, 2.2, 2.2, 2.2],
                     dict(factor=0.5, patience=2, threshold=0.02, cooldown=2, min_lr=0.01)),
    "plateau_accuracy": ("max", [0.25, 0.25, 0.5, 0.5, 0.5, 0.75, 0.75, 0.625, 0.8125, 0.8125],
                         dict(factor=0.1, patience=0, threshold=1e-4)),
}


def initial(i):
    return (i - 2.5) / 4


def gradient(step, i):
    return ((step * 7 + i * 13) % 17 - 8) / 64 * (i + 1)


def main():
    for name, (kind, arguments, clip) in CASES.items():
        parameter = torch.nn.Parameter(torch.tensor([initial(i) for i in range(SIZE)], dtype=torch.float32))
        optimizer = kind([parameter], **arguments)
        for step in range(STEPS):
            parameter.grad = torch.tensor([gradient(step, i) for i in range(SIZE)], dtype=torch.float32)
            if clip is not None:
                torch.nn.utils.clip_grad_norm_([parameter], clip)
            optimizer.step()
            print(name, step + 1, *("%.9g" % v for v in parameter.tolist()))
    for name, (shape, arguments, clip) in SHAPED.items():
        size = torch.Size(shape).numel()
        parameter = torch.nn.Parameter(torch.tensor([initial(i) for i in range(size)], dtype=torch.float32).view(shape))
        optimizer = torch.optim.Adafactor([parameter], foreach=False, **arguments)
        for step in range(STEPS):
            parameter.grad = torch.tensor([gradient(step, i) for i in range(size)], dtype=torch.float32).view(shape)
            if clip is not None:
                torch.nn.utils.clip_grad_norm_([parameter], clip)
            optimizer.step()
            print(name, step + 1, *("%.9g" % v for v in parameter.flatten().tolist()))
    for name, (case, decay, first) in AVERAGES.items():
        kind, arguments, _ = CASES[case]
        model = torch.nn.Module()
        model.weight = torch.nn.Parameter(torch.tensor([initial(i) for i in range(SIZE)], dtype=torch.float32))
        optimizer = kind([model.weight], **arguments)
        average = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(decay))
        for step in range(STEPS):
            model.weight.grad = torch.tensor([gradient(step, i) for i in range(SIZE)], dtype=torch.float32)
            optimizer.step()
            if step + 1 >= first:
                average.update_parameters(model)
            shown = average.module.weight if step + 1 >= first else model.weight
            print(name, step + 1, *("%.9g" % v for v in shown.tolist()))
    for name, make in {
        "schedule_step": lambda o: torch.optim.lr_scheduler.StepLR(o, step_size=3, gamma=0.5),
        "schedule_cosine": lambda o: torch.optim.lr_scheduler.CosineAnnealingLR(o, T_max=STEPS, eta_min=0.001),
        "schedule_linear": lambda o: torch.optim.lr_scheduler.LinearLR(o, 1.0, 0.01, total_iters=STEPS),
        "schedule_polynomial": lambda o: torch.optim.lr_scheduler.PolynomialLR(o, total_iters=STEPS, power=1.7),
        "schedule_exponential": lambda o: torch.optim.lr_scheduler.ExponentialLR(o, gamma=0.5 ** (1 / 3)),
        "schedule_milestones": lambda o: torch.optim.lr_scheduler.MultiStepLR(o, milestones=[2, 3, 7], gamma=0.5),
        "schedule_cosine_restarts":
            lambda o: torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(o, T_0=3, T_mult=2, eta_min=0.001),
        "schedule_one_cycle": lambda o: torch.optim.lr_scheduler.OneCycleLR(
            o, max_lr=0.1, total_steps=STEPS + 1, pct_start=0.4, div_factor=10.0, final_div_factor=100.0,
            cycle_momentum=False),
    }.items():
        optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.1)
        schedule = make(optimizer)
        rates = []
        for _ in range(STEPS):
            rates.append(optimizer.param_groups[0]["lr"])
            optimizer.step()
            schedule.step()
        print(name, STEPS, *("%.15g" % r for r in rates))
    print_groups()
    for name, (mode, values, arguments) in PLATEAUS.items():
        optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.1)
        schedule = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, mode=mode, **arguments)
        rates = []
        for value in values:
            optimizer.step()
            schedule.step(value)
            rates.append(optimizer.param_groups[0]["lr"])
        print(name, len(rates), *("%.15g" % r for r in rates))


# The second of two groups, and its rate under a schedule with a least one.
def print_groups():
    def parameter():
        return torch.nn.Parameter(torch.tensor([initial(i) for i in range(SIZE)], dtype=torch.float32))

    first, second = parameter(), parameter()
    optimizer = torch.optim.AdamW([{"params": [first]}, {"params": [second], "lr": 0.03, "weight_decay": 0.2}],
                                  lr=0.01, weight_decay=0.1)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=STEPS, eta_min=0.001)
    for step in range(STEPS):
        first.grad = torch.tensor([gradient(step, i) for i in range(SIZE)], dtype=torch.float32)
        second.grad = first.grad.clone()
        optimizer.step()
        schedule.step()
        print("group_adamw", step + 1, *("%.9g" % v for v in second.tolist()))


if __name__ == "__main__":
    main()
