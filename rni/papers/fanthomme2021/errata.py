"""Errata of the paper: formulas and statements that do not hold as printed, with their corrected forms.

For each erratum, a test of the same name in `tests/theory/test_errata.py` shows that the corrected form holds and that
the printed form fails. The exception is the caption of Fig 6, which contradicts itself.
"""

from rni.papers.claims import Erratum

_MANIFOLDS = "Appendix, Generalizing Integrators in the null initialization subspace"
_CONVERGENCE = "Appendix, Minimum convergence time"
_ALGEBRAIC = "Appendix, Algebraic convergence for specific scale value"
_SPECIAL = "Appendix, Two special cases of null initialization"
_PROXY = "Appendix, Single-channel ReLU proxy loss gradients and Hessian"
_RANK_ONE_RELU = "Appendix, Analysis of rank-1 ReLU generalizing integrators"

ERRATA: tuple[Erratum, ...] = (
    Erratum(
        "order_of_vectors",
        "Section 3, Special case of null-weight initialization",
        r"$v_1 \equiv e,\ v_2 \equiv d$",
        r"$v_1 \equiv d,\ v_2 \equiv e$",
        r"$\mu_k = (\sqrt\Sigma\,\omega^k\sqrt\Sigma)_{12}$ and the closed forms of $\alpha_0, \beta_0, Z, g_1$ hold "
        r"with the decoder first; with the encoder first both miss $d^\dagger W^k e$.",
    ),
    Erratum(
        "multiplexing_capacity",
        "Section 3, Case of multiple channels",
        r"Multiplexing is possible as long as $D \le n$ and encoders and decoders each form free families.",
        r"It is possible if and only if, in addition, $\mathrm{rank}(D^\dagger E - S) \le n - D$: always for "
        r"$n \ge 2D$, for $n = D$ only if $d_c \cdot e_{c'} = s_c\,\delta_{cc'}$.",
        r"For $n = D$ the first moments fix $W = D^{-\dagger} S\Gamma E^{-1}$, whose second moments are wrong for free "
        r"families in general and right when $D^\dagger E = S$; for $D < n < 2D$ the Hankel matrix of the wanted "
        r"moments has rank $D + \mathrm{rank}(D^\dagger E - S) > n$.",
    ),
    Erratum(
        "same_vectors_sign",
        _SPECIAL,
        r"$\Delta w / \eta = P(w)$",
        r"$\Delta w / \eta = -P(w)$",
        r"Gradient of the averaged loss for e = d. With the printed sign the integrator, where $P' > 0$, would repel.",
    ),
    Erratum(
        "same_vectors_stability",
        _SPECIAL,
        r"convergent only if $\eta < P'(\gamma/|e|^2)^{-1}$",
        r"convergent if and only if $\eta < 2\,P'(\gamma/|e|^2)^{-1}$ (monotonic below half of that)",
        r"Descent at 1.9 times the printed limit converges, at 2.1 times it does not. For T = 1 the printed limit "
        r"would be half of the one printed a paragraph earlier.",
    ),
    Erratum(
        "special_scale",
        _MANIFOLDS,
        r"integrators at scale $s = d^\dagger e / \gamma$",
        r"integrators at scale $s = d^\dagger e$",
        r"Matrices of both rank-2 manifolds are integrators of scale d.e and of no other.",
    ),
    Erratum(
        "special_case_matrix",
        _MANIFOLDS + ", case $u_1 = 0$",
        r"$\omega = \begin{pmatrix} \lambda & 0 \\ (\gamma - \lambda) v & \gamma \end{pmatrix}$",
        r"$\omega = \begin{pmatrix} \lambda & 0 \\ (\lambda - \gamma) v & \gamma \end{pmatrix}$",
        r"Product $P\,\mathrm{diag}(\gamma, \lambda)\,P^{-1}$ with the modal matrix P given there.",
    ),
    Erratum(
        "rank_two_manifold_entry",
        _ALGEBRAIC,
        r"last entry of $\mathcal{M}_{\beta_0}$: $\beta\lambda - \alpha_0\gamma$",
        r"$\beta\lambda - \beta_0\gamma$",
        r"Eigenvalues are $\gamma$ and $\lambda$ and the matrix is a generalizing integrator with the correction only.",
    ),
    Erratum(
        "lowrank_hessian_factor",
        "Appendix, Gradients and Hessian in the low-rank parametrization",
        r"$\mathcal{H}_{ij,kl} = \sum_{qp} \chi_{qp}\,\partial_{ij}\mu_q\,\partial_{kl}\mu_p$",
        r"$\mathcal{H}_{ij,kl} = 2\sum_{qp} \chi_{qp}\,\partial_{ij}\mu_q\,\partial_{kl}\mu_p$",
        r"Automatic differentiation. With the printed Hessian the learning rate $1/\lambda_{max}$ would be at the edge "
        r"of stability, $2/\lambda_{max}$ of the true one.",
    ),
    Erratum(
        "taylor_factor",
        _CONVERGENCE,
        r"$\mathcal{L}(W^* + \delta W) = \sum \delta W_{ij}\,\mathcal{H}_{ij,kl}\,\delta W_{kl}$",
        r"$\mathcal{L}(W^* + \delta W) = \frac12 \sum \delta W_{ij}\,\mathcal{H}_{ij,kl}\,\delta W_{kl}$",
        r"Loss close to a minimum, with the Hessian that the printed update $\delta \to (1 - \eta\lambda)\,\delta$ "
        r"needs.",
    ),
    Erratum(
        "overlap_recipe",
        _CONVERGENCE + ", footnote",
        r"$d \leftarrow o\,e + (1 - o)\,d$, then rescaled: the overlap $d^\dagger e$ is close to $o$",
        r"the cosine of d and e, which rescaling keeps, is $o / \sqrt{o^2 + (1 - o)^2}$",
        r"Vectors drawn by the recipe: $o = 0.8$ gives a cosine of 0.970, $o = 0.4$ gives 0.555.",
    ),
    Erratum(
        "slow_direction",
        _ALGEBRAIC,
        r"$\dot x = a x^2$, $x \sim \tau^{-1}$, $\mathcal{L} = O(x^2) \sim \tau^{-2}$",
        r"$\dot x = -a x^3$, $x \sim \tau^{-1/2}$, $\mathcal{L} = O(x^4) \sim \tau^{-2}$",
        r"Along a null direction of the Hessian the loss, never negative, has no quadratic and no cubic term. In "
        r"descent from W = 0 at s = d.e the distance to the intersection falls with exponent -1/2, the loss "
        r"with exponent -2.",
    ),
    Erratum(
        "proxy_gradient",
        _PROXY,
        r"$2\,(W R(\pm We) \mp \gamma We)_i\,(R(\pm We) \mp s\gamma)_j$",
        r"$2\,(W R(\pm We) \mp \gamma We)_i\,(R(\pm We) \mp \gamma e)_j$",
        r"Automatic differentiation of the proxy loss.",
    ),
    Erratum(
        "proxy_hessian_index",
        _PROXY + r", Hessian of $\mathcal{L}^2$, fourth line",
        r"$\delta_{jk}\,(W R(\pm We) \mp \gamma We)_i\,e_l\,\mathcal{H}(\pm We)$, the last factor without an index",
        r"$\delta_{jk}\,(W R(\pm We) \mp \gamma We)_i\,e_l\,\mathcal{H}(\pm We)_k$",
        r"Automatic differentiation: holds with index k (= j), fails with i, with l and with the factor left out.",
    ),
    Erratum(
        "proxy_hessian_repeated_index",
        _PROXY + ", full Hessian, third line",
        r"$(R(-We) + \gamma e)_j\,(R(-We) + \gamma e)_j$",
        r"$(R(-We) + \gamma e)_j\,(R(-We) + \gamma e)_l$",
        r"Automatic differentiation; the printed term is not symmetric under $ij \Leftrightarrow kl$.",
    ),
    Erratum(
        "proxy_hessian_heaviside",
        _PROXY + ", full Hessian, fourth and fifth line",
        r"$\delta_{jk}\,(W^2 e - 2\gamma We)_i\,e_l$ and $W_{ik}\,(We - 2\gamma e)_j\,e_l$",
        r"$\delta_{jk}\,\sum_\pm \pm (W R(\pm We) \mp \gamma We)_i\,\mathcal{H}(\pm We)_k\,e_l$ and "
        r"$W_{ik}\,\sum_\pm \pm (R(\pm We) \mp \gamma e)_j\,\mathcal{H}(\pm We)_k\,e_l$",
        r"Automatic differentiation. The fifth line fails even at an exact integrator; the fourth is 0 there anyway.",
    ),
    Erratum(
        "proxy_hessian_extra_factor",
        _PROXY + ", full Hessian, last line",
        r"$\delta_{ik}\,e_j e_l\,d^\dagger|We|\,\sum_a W_{ai}\,(W|We|)_a\,\delta(We)_i$",
        r"$\delta_{ik}\,e_j e_l\,\sum_a W_{ai}\,(W|We|)_a\,\delta(We)_i$",
        r"Automatic differentiation with a smooth rectifier, whose second derivative takes the place of the Dirac "
        r"distribution.",
    ),
    Erratum(
        "relu_singular_value",
        "Section 4, Properties of the connection matrix",
        r"$\sigma \ge 2\max(1, s)$, tight for scales far from 1",
        r"$\sigma \ge 2\gamma\max(1, s)$, as in the appendix",
        r"$W = 2\gamma\,d d^\dagger$ with $e = d$ balanced between signs is an exact ReLU integrator of scale 1 with "
        r"$\sigma = 2\gamma < 2$.",
    ),
    Erratum(
        "relu_left_overlap",
        _RANK_ONE_RELU,
        r"$d^\dagger l_\pm = \pm|d\,R(\pm d)|^2 \simeq \pm\frac12$ for $l = d$",
        r"$d^\dagger l_\pm = \pm|R(\pm d)|^2 \simeq \pm\frac12$",
        r"Random unit vector: the printed square is of order 1/n.",
    ),
    Erratum(
        "sigmoid_quotient",
        "Section 5, Case of sigmoidal units",
        r"the ratios r of sigmoidal networks are 2 to 10 times larger than for their ReLU counterparts",
        r"1.98 to 25.7 times: 4.3 and 25.7 for the batch loss ($D = 1, 2$), 1.98, 2.3, 3.0 and 2.4 for the proxy "
        r"($D = 1, 2, 3, 5$)",
        r"Quotients of the rows of Table 1 itself.",
    ),
    Erratum(
        "eigenmodes",
        "Section 3, Case of multiple channels; Section 5, currents of ReLU networks; "
        + _MANIFOLDS
        + ", from omega to W",
        r"W of rank D has singular vectors $l_c, r_c$ with $r_c^\dagger e_{c'} = d_c^\dagger l_{c'} = r_c^\dagger "
        r"l_{c'} = 0$; the $l_c$ of a ReLU network, and x and y of $\omega = \sigma_\omega\, x y^\dagger$, are "
        r"eigenvectors",
        r"eigenmodes in the conditions for several channels, which are orthogonal to each other but not among "
        r"themselves; singular vectors in the other two places",
        r"For D = 2 an exact integrator of rank 2 satisfies the five conditions by its eigenmodes; by its singular "
        r"vectors it misses them by more than 0.01, in any order.",
    ),
    Erratum(
        "order_one",
        _CONVERGENCE,
        r"the least $\mathcal{C}$ along the integrators of a scale is at $\alpha, \beta$ of order 1",
        r"at $s \simeq |e||d|$; away from it one of them is far from 1, and both grow as $|e||d| / s$ for small scales "
        r"and orthogonal vectors",
        r"The fastest integrator for unit vectors: $|\alpha|$ and $|\beta|$ between 0.1 and 10 at s = 1, above 50 at s "
        r"= 0.01 and below 0.1 at s = 10.",
    ),
    Erratum(
        "three_steps_from_small_weights",
        "Section 3, Initialization with full rank connection matrices",
        r"from a W of small spectral norm a generalizing integrator is obtained as soon as $T \ge 3$",
        r"from W = 0; from a random W of radius $\rho$ the loss vanishes at a W whose eigenvalue misses $\gamma$ by an "
        r"amount in proportion to $\rho^2$",
        r"Descent to a loss of 1e-20 with T = 3: the error of the eigenvalue at $\rho$ = 0.1 is 100 times that at "
        r"0.01, and no more than rounding from W = 0.",
    ),
    Erratum(
        "leaving_the_slow_manifold",
        _ALGEBRAIC,
        r"$\eta$ and the noise on the updates need to be small, or descent from W = 0 leaves the slow manifold",
        r"only noise that is not the loss's own leaves it",
        r"The moments stay the same when e and d change places and W is transposed, and with them the loss of every "
        r"batch: from W = 0 descent stays symmetric in this sense, on batches and at 1.9 times the best learning rate.",
    ),
    Erratum(
        "sum_over_neurons",
        "Section 4.3 and Section 5, proxy losses",
        r"the current term is summed over the neurons, $|W f(WEz) - WE\,\Gamma z|^2$",
        r"so it is printed; the authors' trainings have its mean, the same divided by n",
        r"With $a = 1/n$ for the weight of the current term the proxy loss is the authors'. It is what Table 1 was "
        r"made with, but for ReLU networks of one channel.",
    ),
    Erratum(
        "losses_of_figure_6",
        "Section 4.3, caption of Fig 6",
        r"panel C is of networks trained on the proxy loss, and those networks were trained using the batch loss",
        r"one or the other; recruitment is the same for both",
        r"The caption of ours says which loss each panel has, and panel D has both.",
    ),
)
