"""Networks from and for elsewhere: our files, other people's formats, any vanilla RNN, recordings, export."""

from rni.exchange.native import NetworkFile as NetworkFile
from rni.exchange.native import load as load
from rni.exchange.native import read as read
from rni.exchange.native import save as save
from rni.exchange.recording import Recording as Recording
from rni.exchange.vanilla import VanillaRNN as VanillaRNN
