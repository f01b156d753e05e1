"""Networks from and for elsewhere: our files, other people's formats, any vanilla RNN, recordings, export."""

from rni.files.native import NetworkFile as NetworkFile
from rni.files.native import load as load
from rni.files.native import read as read
from rni.files.native import save as save
from rni.files.recording import Recording as Recording
from rni.networks.vanilla import VanillaRNN as VanillaRNN
